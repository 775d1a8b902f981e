"""The functions that a shared library exports, read from its file."""
import struct

SHT_DYNSYM = 11
STT_FUNC, STT_GNU_IFUNC = 2, 10


def exported_functions(path):
    """Their names, without versions. For 64-bit little-endian ELF files."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + index * size) for index in range(count)]
    names = set()
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != SHT_DYNSYM:
            continue
        strings = sections[link][4]
        for at in range(start, start + length, entry):
            name, info, _, section = struct.unpack_from("<IBBH", data, at)
            if section != 0 and info & 0xF in (STT_FUNC, STT_GNU_IFUNC):
                end = data.index(b"\0", strings + name)
                names.add(data[strings + name:end].decode())
    return names
