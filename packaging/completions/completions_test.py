#!/usr/bin/env python3
"""The shells' completions offer the options that the commands' helps have, and the shells can read them. The
helps say what each option is for.

  completions_test.py XSCHED FOLDER
"""
import pathlib
import re
import shutil
import subprocess
import sys

COMMANDS = ("run", "top", "list", "hint", "policy", "cdi", "config", "doctor", "demo", "plan", "record", "trace", "explain", "simulate", "calibrate")
SUBCOMMANDS = (("policy", "set"), ("cdi", "generate"), ("config", "get"), ("config", "set"))
GIVEN = ("--bin", "--prefix", "--help")  # `xsched plan` gives the first to its script, and everybody knows the last
READERS = {"xsched.bash": ("bash", "-n"), "_xsched": ("zsh", "-n"), "xsched.fish": ("fish", "--no-execute")}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def options_in_help(xsched, *command):
    """{option: does it take a value}"""
    declared = re.findall(r"^  (-\S+)( [A-Z]{3}| {)?", output(xsched, *command, "--help"), re.M)
    return {name: bool(value) for names, value in declared for name in names.split(",") if name.startswith("--") and name not in GIVEN}


def without_description(xsched, *command):
    """The options of which the help has only the names and what values they take."""
    return re.findall(r"^  (-\S+) [A-Z]+(?::(?:[A-Z]+(?: in \[[^]]*\])?|above 0))?\n(?! {8})", output(xsched, *command, "--help"), re.M)


def section(name, text, command):
    """What the file says of one command."""
    if name == "xsched.fish":
        return "".join(re.findall(rf"^.*__fish_seen_subcommand_from {command}'.*\n", text, re.M))
    return re.search(rf"^ +{command}\) .*?;;$", text, re.M | re.S).group(0)


def as_written(name, option, takes_value):
    if name == "xsched.fish":
        return rf" -l {option[2:]}( -[ls] \S+)*{' -[xr]' if takes_value else '(?! -[xr])'}(?![\w-])"
    if name == "_xsched":
        return rf"'{option}(\[.*\])?{':' if takes_value else chr(39)}"
    return rf"{option}(?![\w-])"


def main(xsched, folder):
    faults = [f"{' '.join(command)} --help does not say what {option} is for"
              for command in [(command,) for command in COMMANDS] + list(SUBCOMMANDS)
              for option in without_description(xsched, *command)]
    for name, reader in READERS.items():
        file = pathlib.Path(folder) / name
        text = file.read_text(encoding="utf-8")
        for command in [(command,) for command in COMMANDS] + list(SUBCOMMANDS):
            offered = section(name, text, command[0])
            faults += [f"{name}: {' '.join(command)} {option} is missing or has a wrong kind"
                       for option, takes_value in options_in_help(xsched, *command).items()
                       if not re.search(as_written(name, option, takes_value), offered)]
        if shutil.which(reader[0]):
            read = subprocess.run([*reader, file], capture_output=True, text=True, check=False)
            faults += [f"{name}: {line}" for line in read.stderr.splitlines()]
    for words, wanted in ((["hint", "--time"], "--timeslice"), (["config", "--queue", "1", "--l"], "--level"),
                          (["policy", "--q"], "--query"), (["hi"], "hint")):
        line = f"COMP_WORDS=(xsched {' '.join(words)}); COMP_CWORD={len(words)}; _xsched; echo ${{COMPREPLY[@]}}"
        offered = output("bash", "-c", f"source {folder}/xsched.bash; {line}").split()
        if offered != [wanted]:
            faults.append(f"bash: xsched {' '.join(words)} offers {offered}")
    if faults:
        sys.exit("\n".join(faults))


main(*sys.argv[1:])
