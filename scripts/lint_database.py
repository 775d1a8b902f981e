#!/usr/bin/env python3
"""What BUILD compiles, for clang's tools: one entry for each source, also where CMake compiles a folder's files together, and
without the option that gcc alone has.

  lint_database.py BUILD          prints compile_commands.json
"""
import json
import pathlib
import re
import sys

GCC_ONLY = " -gno-as-loc-support"
INCLUDED = re.compile(r'^#include "([^"]+)"', re.M)


def entries(build):
    """Those of compile_commands.json, with `file` and `command` for clang."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command = entry["command"].replace(GCC_ONLY, "")
        together = "/Unity/" in entry["file"]
        for file in INCLUDED.findall(pathlib.Path(entry["file"]).read_text()) if together else [entry["file"]]:
            yield {**entry, "file": file, "command": command.replace(entry["file"], file)}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(json.dumps(list(entries(pathlib.Path(sys.argv[1]))), indent=0))
