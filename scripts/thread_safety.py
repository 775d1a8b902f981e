#!/usr/bin/env python3
"""Compiles what takes locks with clang's thread-safety analysis as an error: what a lock guards is used with the lock held, and
no lock is taken twice or kept (src/base/thread_annotations.h).

  thread_safety.py -p BUILD [-j JOBS]          of src/, as BUILD compiles them
  thread_safety.py -p BUILD [--verify] FILE…   FILEs, with the flags of one of those; --verify: what they say is to be found in
                                               them (expected-error), and nothing else

Generates no code. Files that do not come to src/base/mutex.h are left out.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

import lint_database

ROOT = pathlib.Path(__file__).resolve().parent.parent
ANALYSIS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def uses_locks(file, known):
    """Does `file` come to mutex.h? By our own headers, which all lie below src/."""
    if file not in known:
        known[file] = False  # until the end, for circles
        below = [ROOT / "src" / name for name in INCLUDE.findall(file.read_text())]
        known[file] = any(header.name == "mutex.h" or (header.exists() and uses_locks(header, known)) for header in below)
    return known[file]


def flags(command):
    """Those of the compiler's arguments that say what the source means."""
    arguments = iter(command[1:])
    for argument in arguments:
        if argument in ("-I", "-isystem", "-D", "-include"):
            yield from (argument, next(arguments))
        elif re.match(r"-[ID].|-std=|-fno-(exceptions|rtti)$", argument):
            yield argument


def commands(build):
    """file -> flags, of what `build` compiles."""
    for entry in lint_database.entries(build):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if file.suffix == ".cc":
            yield file, list(flags(shlex.split(entry["command"])))


def check(file, arguments, verify):
    result = subprocess.run(["clang++", *ANALYSIS, *verify, *arguments, file], capture_output=True, text=True)
    return result.returncode == 0, result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-p", dest="build", type=pathlib.Path, required=True)
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verify", action="store_const", const=["-Xclang", "-verify"], default=[])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    known, compiled = {}, dict(commands(options.build))
    sources = {file: arguments for file, arguments in compiled.items()
               if file.is_relative_to(ROOT / "src") and uses_locks(file, known)}
    if options.files:
        any_flags = next(iter(sources.values()))
        sources = {file.resolve(): compiled.get(file.resolve(), any_flags) for file in options.files}
    if not sources:
        sys.exit(f"{options.build} compiles nothing that takes locks")
    ok = True
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for passed, text in pool.map(lambda item: check(*item, options.verify), sources.items()):
            print(text, end="")
            ok = ok and passed
    print(f"thread safety: {len(sources)} files checked{'' if ok else ', with findings'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
