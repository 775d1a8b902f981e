"""Checks the registry of HIP against what else is known: lists of functions with streams, a library, installed headers."""

import re
import subprocess


def wrong_kinds(registry, functions, path):
    """What stream_functions.txt says against the registry: sections of "[title]: kinds", then names of exports."""
    exported = {e.symbol: name for name, exports in functions.items() for e in exports}
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        section = re.match(r"\[(.*)\]: (.*)", line)
        if section:
            title, kinds = section[1], section[2].split()
            continue
        for symbol in line.split():
            entry = registry.entries.get(exported.get(symbol))
            if entry is None or entry.kind not in kinds:
                yield f"{symbol} is {entry.kind if entry else 'not known'}, but {title}"


def symbols_of(library):
    """What it exports, without the names of its symbols' versions."""
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    symbols = (line.split()[1:] for line in listed.splitlines())
    return {re.sub("@.*", "", name) for kind, name in (symbol[-2:] for symbol in symbols) if kind in "TWV"}
