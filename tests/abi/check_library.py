#!/usr/bin/env python3
"""A library for foreign processes is fit for them: see docs/design.md, the end of "Shims".

  check_library.py LIBRARY --exports PATTERN… --needs NAME…

Checks what it exports (only names that match, and each pattern matches some), what it needs at run time (nothing but the C
library and the names given), the newest glibc that it asks for, its flags, that nothing of the C++ runtime is in its table
of symbols or runs when it is loaded, beyond registering what runs at the end, and that its tables are zero pages until used.
"""

import argparse
import fnmatch
import re
import subprocess
import sys

NEWEST_GLIBC = (2, 34)
MOST_DATA = 1 << 16  # bytes that are in the file, and a program's own once written
C_LIBRARY = ["libc.so.6", "ld-linux*.so.*"]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(library):
    """Names without their versions; the versions' own symbols are absolute (A)."""
    lines = (line.split() for line in run("nm", "-D", "--defined-only", library).splitlines())
    return {re.sub(r"@.*", "", words[2]) for words in lines if words[1] not in "Aa"}


def check_exports(library, patterns):
    names = exports(library)
    for name in sorted(names):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            yield f"exports {name}"
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            yield f"exports nothing that matches {pattern}"


def check_needs(dynamic, needs):
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in C_LIBRARY + needs):
            yield f"needs {name}"


def check_versions(library):
    for version in sorted(set(re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", run("readelf", "-VW", library)))):
        if tuple(map(int, version.split("."))) > NEWEST_GLIBC:
            yield f"needs GLIBC_{version}"
    if "GLIBCXX_" in run("readelf", "-VW", library):
        yield "needs libstdc++"


def check_flags(library, dynamic):
    for flag in ("NOW", "NODELETE"):
        if not re.search(rf"\(FLAGS_1\).*\b{flag}\b", dynamic):
            yield f"is not linked with -z {flag.lower()}"
    if not re.search(r"\(FLAGS\).*\bSYMBOLIC\b|\(SYMBOLIC\)", dynamic):
        yield "is not linked with -Bsymbolic"
    if "GNU_RELRO" not in run("readelf", "-lW", library):
        yield "is not linked with -z relro"
    if re.search(r"\(TEXTREL\)", dynamic):
        yield "has relocations in its code"
    runpath = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
    if runpath and runpath[1] != "$ORIGIN":
        yield f"looks for libraries in {runpath[1]}"


def check_data(library):
    """One number in a large array that is not zero puts all of it into the file."""
    size = int(re.search(r"^\.data\s+(\d+)", run("size", "-A", library), flags=re.M)[1])
    if size > MOST_DATA:
        yield f"has {size} bytes of .data"


def check_initializers(library):
    """Destructors may be registered; nothing else may happen before the program asks for it."""
    disassembly = run("objdump", "-dC", "--no-show-raw-insn", library)
    for name in re.findall(r"^[0-9a-f]+ <(_GLOBAL__sub_I_[^>]*)>:", disassembly, flags=re.M):
        body = re.search(rf"<{re.escape(name)}>:\n(.*?)(?:\n\n|\Z)", disassembly, flags=re.S)[1]
        for callee in re.findall(r"(?:call|jmp)q?\s+[0-9a-f]+ <([^>+]*)", body):
            if callee != name and not re.fullmatch(r"(__cxa_)?atexit(@.*)?", callee):
                yield f"calls {callee} when it is loaded ({name})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--exports", nargs="+", required=True, help="patterns (*, ?) of names")
    parser.add_argument("--needs", nargs="*", default=[], help="patterns of libraries of ours")
    options = parser.parse_args()
    dynamic = run("readelf", "-dW", options.library)
    faults = [*check_exports(options.library, options.exports), *check_needs(dynamic, options.needs),
              *check_versions(options.library), *check_flags(options.library, dynamic), *check_data(options.library),
              *check_initializers(options.library)]
    for fault in faults:
        print(f"{options.library} {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
