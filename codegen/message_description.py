"""The description of the messages (registry/ipc/messages.toml): reads it, lays the messages out, and finds its faults."""

import pathlib
import re
import struct
import tomllib
from dataclasses import dataclass

DESCRIPTION = pathlib.Path(__file__).resolve().parent.parent / "registry/ipc/messages.toml"


class DescriptionError(Exception):
    """The text says which message or field is wrong, and why."""


@dataclass(frozen=True)
class Type:
    """Of a field. `parts` are the fields of a struct; `length` is that of a text, in bytes, and `count` that of a list of integers."""
    name: str
    size: int
    alignment: int
    code: str = ""  # of Python's struct
    cpp: str = ""
    length: int = 0
    count: int = 0
    parts: tuple = ()

    @property
    def is_text(self):
        return self.length > 0


INTEGERS = {name: Type(name, size, size, code, cpp) for name, size, code, cpp in (
    ("u16", 2, "H", "uint16_t"), ("u32", 4, "I", "uint32_t"), ("u64", 8, "Q", "uint64_t"),
    ("i32", 4, "i", "int32_t"), ("i64", 8, "q", "int64_t"), ("flag", 4, "I", "uint32_t"))}


@dataclass(frozen=True)
class Field:
    name: str
    type: Type
    offset: int
    since: int = 0
    comment: str = ""
    source: str = ""
    kept: bool = False
    json: str = ""

    @property
    def end(self):
        return self.offset + self.type.size


@dataclass(frozen=True)
class Struct:
    """Also a message: then the first field is its header."""
    name: str
    fields: tuple
    comment: str = ""
    mirrors: str = ""
    number: int = 0
    direction: str = ""
    since: int = 0
    senders: tuple = ()  # the objects that the fields' sources name

    @property
    def size(self):
        return self.fields[-1].end

    def size_in(self, minor):
        """As the peers of that minor version know it."""
        return max(field.end for field in self.fields if field.since <= minor)

    def pack(self, **values):
        """What is not named is zero. A part's values are a dictionary; a message's header is filled in."""
        return self._pack(self.fields, values)

    def pack_in(self, minor, **values):
        """The same as a peer of that minor version sends it."""
        return self._pack([field for field in self.fields if field.since <= minor], values)

    def _pack(self, fields, values):
        if self.number:
            values["header"] = {"type": self.number, "size": max(field.end for field in fields)}
        unknown = set(values) - {field.name for field in fields}
        if unknown:
            raise DescriptionError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        return b"".join(_pack(field, values.get(field.name)) for field in fields)


def _pack(field, value):
    if field.type.parts:
        return Struct(field.type.name, field.type.parts).pack(**(value or {}))
    if field.type.is_text:
        return (value or b"").ljust(field.type.size, b"\0")
    if field.type.count:
        return struct.pack("=" + field.type.code, *(value or [0] * field.type.count))
    return struct.pack("=" + field.type.code, value or 0)


@dataclass(frozen=True)
class Constant:
    name: str
    value: int
    text: str  # as C++ writes it
    comment: str


@dataclass(frozen=True)
class Constants:
    """An enumeration, if it has a name."""
    type: Type
    values: tuple
    name: str = ""
    comment: str = ""


class Description:
    def __init__(self, path=DESCRIPTION):
        with open(path, "rb") as file:
            data = tomllib.load(file)
        protocol = data["protocol"]
        self.major = protocol["major"]
        self.max_message = protocol["max_message"]
        self.introduction = protocol["introduction"].strip()
        self.sessions = protocol["sessions"].strip("\n")
        self.minors = {int(minor): text for minor, text in data["minors"].items()}
        self.minor = max(self.minors)
        self.enums = [_read_constants(entry, name) for name, entry in data["enums"].items()]
        self.constants = [_read_constants(entry) for entry in data["constants"].values()]
        self._types = dict(INTEGERS)
        self._types["MessageType"] = Type("MessageType", 2, 2, "H", "MessageType")
        for enum in self.enums:
            self._types[enum.name] = Type(enum.name, enum.type.size, enum.type.size, enum.type.code, enum.name)
        self.structs = [self._read_struct(name, entry) for name, entry in data["structs"].items()]
        self.messages = [self._read_message(name, entry) for name, entry in data["messages"].items()]
        self._check_numbers()
        self.message_types = Constants(INTEGERS["u16"], tuple(Constant(m.name, m.number, str(m.number), "") for m in self.messages),
                                       "MessageType")

    def version(self, minor):
        return f"{self.major}.{minor}"

    def message(self, name):
        return next(message for message in self.messages if message.name == name)

    def message_of(self, number):
        return next(message for message in self.messages if message.number == number)

    def value_of(self, name):
        return next(value.value for group in self.enums + self.constants for value in group.values if value.name == name)

    # ---- reading ----

    def _read_struct(self, name, entry):
        fields = self._lay_out(name, entry["fields"], [])
        if any(field.since for field in fields):
            raise DescriptionError(f"{name} is a part of messages, and never grows")
        result = Struct(name, fields, entry.get("comment", "").strip(), entry.get("mirrors", ""))
        alignment = _check_end(result)
        self._types[name] = Type(name, result.size, alignment, cpp=name, parts=fields)
        return result

    def _read_message(self, name, entry):
        header = Field("header", self._types["Header"], 0)
        message = Struct(name, self._lay_out(name, entry["fields"], [header]), entry.get("comment", "").strip(),
                         number=entry["number"], direction=entry["direction"], since=entry.get("since", 0),
                         senders=tuple(entry.get("from", ())))
        _check_end(message)
        if message.size > self.max_message:
            raise DescriptionError(f"{name} has {message.size} bytes, and max_message is {self.max_message}")
        if max(field.since for field in message.fields) > self.minor or message.since > self.minor:
            raise DescriptionError(f"{name} is newer than the newest minor version")
        for field in message.fields:
            sender = re.match(r"(?!k[A-Z])\w*|", field.source)[0]
            if sender and sender not in message.senders:
                raise DescriptionError(f"{name}.{field.name} comes from {sender}, which `from` does not name")
        return message

    def _lay_out(self, name, entries, fields):
        for entry in entries:
            entry = dict(entry)
            type_name = entry.pop("type")
            field = Field(type=self._type_of(name, type_name), offset=fields[-1].end if fields else 0, **entry)
            if field.type.count and (field.source or field.kept or field.json):
                raise DescriptionError(f"{name}.{field.name} is a list, which code must copy: no source, kept or json")
            if any(field.name == other.name for other in fields):
                raise DescriptionError(f"{name} has two fields {field.name}")
            if fields and field.since < fields[-1].since:
                raise DescriptionError(f"{name}.{field.name} is older than {fields[-1].name}: fields are appended only")
            if field.offset % field.type.alignment != 0:
                hole = field.type.alignment - field.offset % field.type.alignment
                raise DescriptionError(f"{name}.{field.name} begins at {field.offset}: put {hole} reserved bytes before it")
            fields.append(field)
        return tuple(fields)

    def _type_of(self, name, type_name):
        text = re.fullmatch(r"text\[(\d+)\]", type_name)
        if text:
            return Type(type_name, int(text[1]), 1, cpp="char", length=int(text[1]))
        integers = re.fullmatch(r"([ui]\d+)\[(\d+)\]", type_name)
        if integers and integers[1] in INTEGERS:
            one, count = INTEGERS[integers[1]], int(integers[2])
            return Type(type_name, one.size * count, one.alignment, f"{count}{one.code}", one.cpp, count=count)
        if type_name not in self._types:
            raise DescriptionError(f"{name}: there is no type {type_name}")
        return self._types[type_name]

    def _check_numbers(self):
        numbers = {}
        for message in self.messages:
            if message.number in numbers:
                raise DescriptionError(f"{numbers[message.number]} and {message.name} are both number {message.number}")
            numbers[message.number] = message.name


def _check_end(described):
    """The compiler would fill up the end of a struct, so that there would be bytes without a name."""
    alignment = max(field.type.alignment for field in described.fields)
    if described.size % alignment != 0:
        raise DescriptionError(f"{described.name} ends at {described.size}: append {-described.size % alignment} reserved bytes")
    return alignment


def _read_constants(entry, name=""):
    values = []
    for value in entry["values"]:
        text = f"1u << {value['bit']}" if "bit" in value else str(value["value"])
        number = 1 << value["bit"] if "bit" in value else value["value"]
        values.append(Constant(value["name"], number, text, value.get("comment", "")))
    return Constants(INTEGERS[entry["type"]], tuple(values), name, entry.get("comment", ""))
