#!/usr/bin/env python3
"""Takes a file that a patch adds out of the patch.

  added_file.py PATCH PATH OUTPUT
"""
import pathlib
import sys


def added(patch, path):
    """The lines of the new file `path`."""
    lines = iter(patch.splitlines())
    for line in lines:
        if line == "--- /dev/null" and next(lines) == f"+++ b/{path}":
            break
    else:
        sys.exit(f"the patch does not add {path}")
    for line in lines:
        if line.startswith("diff "):
            break
        if line.startswith("+"):
            yield line[1:]


patch, path, output = sys.argv[1:]
pathlib.Path(output).write_text("\n".join(added(pathlib.Path(patch).read_text(encoding="utf-8"), path)) + "\n", encoding="utf-8")
