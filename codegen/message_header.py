"""Writes ipc/messages.h: the messages as structs, and what is made of them field by field."""

import textwrap

COLUMNS = 110
UNITS = {"ns": "nanoseconds", "us": "microseconds"}


def write(description):
    parts = [_beginning(description)]
    parts += [_enum(enum) for enum in (description.message_types, *description.enums)]
    parts += [_constants(group) for group in description.constants]
    parts += [_struct(description, struct) for struct in description.structs]
    parts += [_mirrors(description)]
    parts += [_struct(description, message) for message in description.messages]
    parts += [_sizes(description), "// ---- field by field ----\n", _from_senders(description), _keeping(description),
              _texts(description), _shown(description), _layouts(description)]
    return "\n".join(parts) + "\n}  // namespace xsched::ipc\n"


# ---- text ----

def _comment(text, indent=""):
    """As comment lines; paragraphs stay."""
    prefix = indent + "//"
    lines = []
    for paragraph in filter(None, text.split("\n\n")):
        lines += [prefix] if lines else []
        lines += textwrap.wrap(paragraph, COLUMNS - len(prefix) - 1, break_on_hyphens=False)
    return "".join((line if line == prefix else f"{prefix} {line}") + "\n" for line in lines)


def _lines(lines, indent="  "):
    """Pairs of code and comment. Comments stand behind the code, in one column, or above it where that is too long."""
    widest = max((len(code) for code, comment in lines if comment), default=0)
    room = COLUMNS - len(f"{indent}  // ") - widest
    column = max((len(code) for code, comment in lines if 0 < len(comment) <= room), default=0)
    text = ""
    for code, comment in lines:
        if not comment:
            text += f"{indent}{code}\n"
        elif len(comment) <= room:
            text += f"{indent}{code:{column}}  // {comment}\n"
        else:
            text += f"{_comment(comment[0].upper() + comment[1:] + '.', indent)}{indent}{code}\n"
    return text


def _beginning(description):
    minors = "".join(_comment(f"{minor}: {text}.") for minor, text in description.minors.items())
    sessions = "".join(f"// {line}".rstrip() + "\n" for line in description.sessions.splitlines())
    mirrored = {tuple(struct.mirrors.split("::")) for struct in description.structs if struct.mirrors}
    declared = "".join(f"namespace xsched::{namespace} {{\nstruct {name};\n}}\n" for namespace, name in sorted(mirrored))
    return f"""// Written by codegen/messages.py from registry/ipc/messages.toml: edit that.
//
{_comment(description.introduction)}//
{sessions}#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "ipc/text.h"
#include "xsched/types.h"

// Declared alone: this layer does not know what is in it.
{declared}
namespace xsched::ipc {{

inline constexpr uint16_t kMajor = {description.major};
{minors}inline constexpr uint16_t kMinor = {description.minor};
inline constexpr uint32_t kMaxMessage = {description.max_message};  // bytes; a longer packet is an error
"""


# ---- constants ----

def _enum(enum):
    lines = _lines([(f"k{value.name} = {value.text},", value.comment) for value in enum.values])
    return f"{_comment(enum.comment)}enum class {enum.name} : {enum.type.cpp} {{\n{lines}}};\n"


def _constants(group):
    lines = [(f"inline constexpr {group.type.cpp} k{value.name} = {value.text};", value.comment) for value in group.values]
    return _comment(group.comment) + _lines(lines, "")


# ---- structs ----

def _struct(description, struct):
    kind = f"  static constexpr MessageType kType = MessageType::k{struct.name};\n" if struct.number else ""
    fields = _lines([(_declaration(field), _explanation(description, field)) for field in struct.fields])
    comment = _comment(f"{struct.direction}. {struct.comment}".strip() if struct.number else struct.comment)
    return f"{comment}struct {struct.name} {{\n{kind}{fields}}};\n"


def _declaration(field):
    length = field.type.length or field.type.count
    return f"{field.type.cpp} {field.name}{f'[{length}]' if length else ''};"


def _explanation(description, field):
    return "; ".join(filter(None, [field.comment, f"since {description.version(field.since)}" if field.since else ""]))


def _layout(struct):
    checks = "".join(f"static_assert(offsetof({struct.name}, {field.name}) == {field.offset});\n" for field in struct.fields)
    return f"static_assert(sizeof({struct.name}) == {struct.size});\n{checks}"


def _layouts(description):
    layouts = "".join(_layout(struct) for struct in [*description.structs, *description.messages])
    return f"// ---- the layout, on which all peers agree ----\n\n{layouts}"


def _sizes(description):
    rows = "".join(f"    {{MessageType::k{message.name}, {message.size}}},\n" for message in description.messages)
    return f"""// Every message, with its size.
struct MessageSize {{
  MessageType type;
  uint32_t size;
}};
inline constexpr MessageSize kMessageSizes[] = {{
{rows}}};
"""


# ---- field by field ----

def _mirrors(description):
    names = dict.fromkeys(struct.mirrors for struct in description.structs if struct.mirrors)
    return "\n".join(_mirror(name, [struct for struct in description.structs if struct.mirrors == name]) for name in names)


def _mirror(name, parts):
    """The members are named, so that one which the other side lacks does not compile."""
    constraint = f"template <std::same_as<{name}> T>"
    size = " + ".join(f"sizeof({part.name})" for part in parts)
    to_parts = "".join(f"{constraint}\n{_to_part(part)}" for part in parts)
    sources = [(part, f"part{number}" if len(parts) > 1 else "from") for number, part in enumerate(parts, 1)]
    parameters = ", ".join(f"const {part.name}& {source}" for part, source in sources)
    return f"""// From {name}, and to it.
{to_parts}{constraint}
constexpr T FromWire({parameters}) {{
  static_assert(sizeof(T) == {size}, "a member is on one side only");
  return {{{_members(sources)}}};
}}
"""


def _to_part(part):
    return f"constexpr {part.name} {part.name}From(const T& from) {{\n  return {{{_members([(part, 'from')])}}};\n}}\n"


def _members(sources):
    return ",\n          ".join(f".{field.name} = {source}.{field.name}" for part, source in sources for field in part.fields
                                if field.name != "reserved")


def _value(field):
    """What is assigned to a field that has a source."""
    if field.type.parts:
        return f"{field.type.name}From({field.source})"
    unit = UNITS.get(field.name.rpartition("_")[2])
    value = f"{field.source} / std::chrono::{unit}(1)" if unit else field.source
    return f"static_cast<{field.type.cpp}>({value})"


def _from_sources(message):
    parameters = ", ".join(f"const {_parameter_type(sender)}& {sender}" for sender in message.senders)
    types = ", ".join(f"typename {_parameter_type(sender)}" for sender in message.senders)
    lines = [f"SetText(message.{f.name}, {f.source});" if f.type.is_text else f"message.{f.name} = {_value(f)};"
             for f in message.fields if f.source]
    body = "".join(f"  {line}\n" for line in lines)
    return f"""template <{types}>
{message.name} {message.name}From({parameters}) {{
  {message.name} message{{}};
{body}  return message;
}}
"""


def _parameter_type(sender):
    return "".join(word.capitalize() for word in sender.split("_"))


def _from_senders(description):
    functions = "".join(_from_sources(message) for message in description.messages if message.senders)
    return _comment("Messages as their senders have them. What has no source there is zero, for the sender to set.") + functions


def _keeping(description):
    text = _comment("What the receiver keeps under the same names.")
    for message in description.messages:
        kept = [field for field in message.fields if field.kept]
        if kept:
            lines = "".join(f"  receiver.{field.name} = message.{field.name};\n" for field in kept)
            text += f"void KeepIn(auto& receiver, const {message.name}& message) {{\n{lines}}}\n"
    return text


def _texts(description):
    text = _comment("Ends each text with a NUL, whatever the peer has sent.")
    text += "template <typename T>\nvoid EndTexts(T&) {}\n"
    for message in description.messages:
        names = [field.name for field in message.fields if field.type.is_text]
        if names:
            lines = "".join(f"  EndText(message.{name});\n" for name in names)
            text += f"inline void EndTexts({message.name}& message) {{\n{lines}}}\n"
    return text


def _shown_fields(fields, path):
    for field in fields:
        if field.type.parts:
            yield from _shown_fields(field.type.parts, f"{path}.{field.name}")
        elif field.json:
            value = f"{path}.{field.name}"
            if field.type.is_text:
                value = f"static_cast<const char*>({value})"
            yield f"  visit(\"{field.json}\", {value}{' != 0' if field.type.name == 'flag' else ''});\n"


def _shown(description):
    text = _comment("visit(name, value) for each value that is shown as it is. `name`: in JSON.")
    for message in description.messages:
        if any(field.json for field in message.fields):
            lines = "".join(_shown_fields(message.fields, "message"))
            text += f"void ForEachShown(const {message.name}& message, auto&& visit) {{\n{lines}}}\n"
    return text


