#!/usr/bin/env python3
"""Prints the failed tests, with the end of each one's output: for logs that keep only their end.

  failed_tests.py FILE...     as `ctest --output-junit` writes them
"""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

CHARACTERS = 7000  # of all outputs together
LINES = 30  # of each output


def failed(path):
    for case in ElementTree.parse(path).iter("testcase"):
        if case.get("status") == "fail" or case.find("skipped[@message='Unable to find executable']") is not None:
            yield path.parent.name, case


def main(paths):
    cases = [case for path in paths for case in failed(path)]
    for suite, case in cases:
        lines = (case.findtext("system-out") or "").rstrip().splitlines()[-LINES:]
        print(f"-- {suite}: {case.get('name')}, after {float(case.get('time')):.1f} s:")
        print("\n".join(lines)[-CHARACTERS // len(cases):])


main([pathlib.Path(path) for path in sys.argv[1:]])
