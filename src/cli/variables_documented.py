#!/usr/bin/env python3
"""Fails unless `xsched config` and the manual explain exactly the environment variables that the code reads.

  variables_documented.py SOURCE_FOLDER MANUAL
"""
import pathlib
import re
import sys

NAME = re.compile(r"\b(?:XSCHED_[A-Z0-9_]*[A-Z0-9]|XLOG_LEVEL)\b")
# Variables are explained here, and not read.
TOOLS = (("src", "cli"), ("src", "platforms"))
# Fields of entries in the journal, which are no variables.
FIELDS = pathlib.PurePath("src/server/tenants/audit_log.cc")
# Only whole string literals: messages that contain a name begin with other text.
LITERAL = re.compile(rf"[\"']({NAME.pattern})[\"']")


def read_by_code(root):
    """The variables in the code of libraries and programs. The tools' list of variables, and code that sets them for tests, do not count."""
    found = {}
    for path in [*root.glob("src/**/*.cc"), *root.glob("src/**/*.h"), *root.glob("python/**/*.py")]:
        place = path.relative_to(root)
        if {"testing", "tests"} & set(place.parts) or path.stem.endswith("_test") or place.parts[:2] in TOOLS or place == FIELDS:
            continue
        for name in LITERAL.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, place)
    return found


def main(root, manual):
    read = read_by_code(root)
    if not read:
        sys.exit(f"nothing found in {root}")
    wrong = []
    descriptors = sorted(path.relative_to(root) for path in root.glob("src/platforms/*/platform.cc"))
    for place, files in (("`xsched config`", ["src/cli/variables.cc", *descriptors]), ("the manual", [manual])):
        documented = {name for file in files for name in NAME.findall((root / file).read_text(encoding="utf-8"))}
        wrong += [f"{name}, read in {read[name]}, is not explained in {place}" for name in sorted(read.keys() - documented)]
        wrong += [f"{name} is explained in {place}, and nothing reads it" for name in sorted(documented - read.keys())]
    if wrong:
        sys.exit("\n".join(wrong))


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
