#!/usr/bin/env python3
"""start_test.py FOLDER: the programs of FOLDER accept the arguments that the units give them. A unit whose program refuses them never
starts."""
import pathlib
import re
import shlex
import subprocess
import sys

UNITS = pathlib.Path(__file__).parent
USAGE = 2
# What it cannot do, so that it ends as soon as it has read its arguments.
IMPOSSIBLE = {"xserver": ["--socket", "/dev/null/none"], "xserver-http": ["--listen-fd", "0"]}


def values(unit, name):
    return [line.removeprefix(f"{name}=") for line in unit.read_text().splitlines() if line.startswith(f"{name}=")]


def arguments(unit):
    """As systemd makes them of ExecStart and of the unit's own variables: ${NAME} is one argument, also if it is empty, and $NAME as many
    as it has words."""
    variables = dict(pair.split("=", 1) for value in values(unit, "Environment") for pair in shlex.split(value))
    [command] = values(unit, "ExecStart")
    for word in shlex.split(command):
        if word.startswith("$") and word[1:] in variables:
            yield from variables[word[1:]].split()
        else:
            yield re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word)


def fault(unit, folder):
    """What its program says if it refuses the arguments. None: it accepts them, or is not built."""
    path, *given = arguments(unit)
    program = folder / pathlib.PurePath(path).name
    if not program.exists():
        return None
    ended = subprocess.run([program, *given, *IMPOSSIBLE[program.name]], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=60, check=False)
    if ended.returncode not in (0, USAGE):
        return None
    return f"{unit.name}: {shlex.join([program.name, *given])} ends with {ended.returncode}: {ended.stdout}{ended.stderr}"


def main():
    folder = pathlib.Path(sys.argv[1])
    units = sorted(UNITS.glob("*.service.in"))
    if not units or not (folder / "xserver").exists():
        sys.exit("there are no units, or no programs")
    faults = [text for text in (fault(unit, folder) for unit in units) if text]
    if faults:
        sys.exit("\n".join(faults))


main()
