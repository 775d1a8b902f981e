#!/usr/bin/env python3
"""Fails unless the environment variables that the code reads are those that `xsched config` and the manual explain.

  variables_documented.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

NAME = re.compile(r"\b(?:XSCHED_[A-Z0-9_]*[A-Z0-9]|XLOG_LEVEL)\b")
# Whole string literals: names in messages begin otherwise.
LITERAL = re.compile(rf"[\"']({NAME.pattern})[\"']")


def read_by_code(root):
    """Variables named in libraries and programs. The tools' own list of them, and what sets them for tests, do not read them."""
    found = {}
    for path in [*root.glob("src/**/*.cc"), *root.glob("src/**/*.h"), *root.glob("python/**/*.py")]:
        place = path.relative_to(root)
        if {"testing", "tests"} & set(place.parts) or path.stem.endswith("_test") or place.parts[:2] == ("src", "cli"):
            continue
        for name in LITERAL.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, place)
    return found


def main(root):
    read = read_by_code(root)
    if not read:
        sys.exit(f"nothing found in {root}")
    wrong = []
    for place in ("src/cli/variables.cc", "packaging/man/xsched.1.in"):
        documented = set(NAME.findall((root / place).read_text(encoding="utf-8")))
        wrong += [f"{name}, read in {read[name]}, is not explained in {place}" for name in sorted(read.keys() - documented)]
        wrong += [f"{name} is explained in {place}, and nothing reads it" for name in sorted(documented - read.keys())]
    if wrong:
        sys.exit("\n".join(wrong))


main(pathlib.Path(sys.argv[1]))
