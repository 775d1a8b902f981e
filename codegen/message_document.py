"""Writes docs/protocol.md: the messages for people."""

import re


READING = """`u32` is an unsigned integer of 32 bits, `i64` a signed one of 64. A `flag` has 32 bits, and is 0 or 1. `u64[3]` are
three of them. `text[64]` is UTF-8 in 64 bytes, and ends with a NUL. What is reserved is zero. Each field stands at a multiple of its size. *JSON*: the name under which
`xsched list --json` or `xsched config --json` shows the value as it is; what they say in words is made of several fields."""


def write(description):
    return "\n".join([_beginning(description), _overview(description), _constants(description),
                      *(_struct(description, struct) for struct in description.structs),
                      *(_message(description, message) for message in description.messages)])


def _names_as_code(text):
    return re.sub(r"(?<![`\w:])(k[A-Z]\w*(?:…|\*)?|[A-Z]\w*::\w+)(?![`\w])", r"`\1`", text)


def _paragraphs(text):
    return "\n\n".join(_names_as_code(paragraph) for paragraph in text.split("\n\n"))


def _table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _beginning(description):
    minors = [[f"{description.version(minor)}", _names_as_code(text)] for minor, text in description.minors.items()]
    return f"""# The protocol between clients and the server

<!-- Written by codegen/messages.py from registry/ipc/messages.toml: edit that, then run codegen/messages.py --write-document. -->

{_paragraphs(description.introduction)}

This is version {description.version(description.minor)}. A packet has at most {description.max_message} bytes.

## Sessions

```
{description.sessions}
```

## Versions

{_table(["version", "what it added"], minors)}"""


def _anchor(name):
    return f"[{name}](#{name.lower()})"


def _overview(description):
    rows = [[str(m.number), _anchor(m.name), m.direction, str(m.size)] for m in description.messages]
    return f"## Messages\n\n{READING}\n\n{_table(['number', 'message', 'direction', 'bytes'], rows)}"


def _constants(description):
    groups = "\n".join(_constant_group(group) for group in [*description.enums, *description.constants])
    return f"## Constants\n\n{groups}"


def _constant_group(group):
    rows = [[f"`k{value.name}`", str(value.value), _names_as_code(value.comment)] for value in group.values]
    title = _names_as_code(group.comment) or f"`{group.name}`:"
    return f"{title}\n\n{_table(['name', 'value', 'meaning'], rows)}"


def _size(description, message):
    """With what it was in older minor versions."""
    sizes = []
    for minor in range(message.since, description.minor + 1):
        size = message.size_in(minor)
        if not sizes or sizes[-1][1] != size:
            sizes.append((minor, size))
    newest = f"{message.size} bytes"
    older = [f"{size} before {description.version(sizes[i + 1][0])}" for i, (_, size) in enumerate(sizes[:-1])]
    return f"{newest} ({', '.join(older)})" if older else newest


def _fields(description, struct):
    rows = []
    for field in struct.fields:
        meaning = [_names_as_code(field.comment)] if field.comment else []
        meaning += [f"since {description.version(field.since)}"] if field.since else []
        rows.append([str(field.offset), f"`{field.name}`", field.type.name, "; ".join(meaning), f"`{field.json}`" if field.json else ""])
    return _table(["offset", "field", "type", "meaning", "JSON"], rows)


def _struct(description, struct):
    return f"## {struct.name}\n\n{_paragraphs(struct.comment)}\n\n{struct.size} bytes.\n\n{_fields(description, struct)}"


def _message(description, message):
    since = f", since {description.version(message.since)}" if message.since else ""
    comment = f"{_paragraphs(message.comment)}\n\n" if message.comment else ""
    return (f"## {message.name}\n\nNumber {message.number}, {message.direction}{since}: {_size(description, message)}.\n\n"
            f"{comment}{_fields(description, message)}")
