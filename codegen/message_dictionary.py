"""Writes ipc/messages.dict: what libFuzzer puts into sessions, in its own syntax."""


def write(description):
    lines = ["# Written by codegen/messages.py from registry/ipc/messages.toml: edit that."]
    lines += [_entry(f"{message.name}_header", message.pack()[:description.structs[0].size]) for message in description.messages]
    for group in [*description.enums, *description.constants]:
        for value in group.values:
            lines.append(_entry(value.name, (value.value % (1 << 32)).to_bytes(group.type.size, "little")))
    return "\n".join(lines) + "\n"


def _entry(name, data):
    return f'{name}="{"".join(f"{chr(92)}x{byte:02x}" for byte in data)}"'
