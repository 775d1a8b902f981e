#!/usr/bin/env python3
"""What our libraries export to each other is used: by another library, by a tool that looks it up by its name, or by a test.

  private_exports.py LIBRARY… --by-name FOLDER --for-tests NAME…
"""
import argparse
import pathlib
import re
import sys

from check_library import exports, run


def imports(library):
    return {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", library).splitlines()}


def faults(options):
    used = set().union(*map(imports, options.libraries))
    sources = "".join(file.read_text(encoding="utf-8") for file in options.by_name.rglob("*.cc"))
    looked_up = set(re.findall(r'"(\w+)"', sources))
    found = 0
    for library in options.libraries:
        for name, *version in sorted(exports(library)):
            if version != ["XSCHED_PRIVATE"]:
                continue
            found += 1
            if name not in used | looked_up and not any(known in name for known in options.for_tests):
                yield f"{library} exports {name}, and nothing uses it"
    if not found:
        yield "no library exports anything to another: is XSCHED_PRIVATE still what they call that?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--by-name", type=pathlib.Path, required=True, help="where names are looked up at run time")
    parser.add_argument("--for-tests", nargs="*", default=[], help="parts of names")
    found = list(faults(parser.parse_args()))
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
