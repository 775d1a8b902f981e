#!/usr/bin/env python3
"""Checks what the programs and libraries in a folder need of a system: no shared library but glibc's, and no version of glibc newer than
the given one.

  elf_needs.py FOLDER --glibc 2.17
"""
import argparse
import pathlib
import re
import subprocess
import sys

SYSTEM = re.compile(r"(ld-linux.*|libc|libm|libdl|libpthread|librt)\.so\.\d+")
OWN = re.compile(r"lib(preempt|hal|shim)[a-z0-9]*\.so.*")


def version(text):
    return [int(part) for part in text.split(".")]


def needs(file):
    """The libraries that a file names, and the versions of their symbols that it asks for (not those that it has itself)."""
    text = subprocess.run(["readelf", "--wide", "--dynamic", "--version-info", file], check=True, capture_output=True, text=True).stdout
    libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", text)
    wanted = text.partition("Version needs section")[2]
    return libraries, re.findall(r"Name: GLIBC_([0-9.]+)", wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--glibc", required=True, type=version)
    options = parser.parse_args()
    faults, checked, newest = [], 0, [0]
    for file in sorted(options.folder.rglob("*")):
        if file.is_symlink() or not file.is_file() or file.open("rb").read(4) != b"\x7fELF":
            continue
        checked += 1
        name = file.relative_to(options.folder)
        libraries, versions = needs(file)
        faults += [f"{name} needs {library}" for library in libraries if not SYSTEM.fullmatch(library) and not OWN.fullmatch(library)]
        for found in versions:
            newest = max(newest, version(found))
            if version(found) > options.glibc:
                faults.append(f"{name} needs glibc {found}")
    if not checked:
        faults.append(f"{options.folder} has no program and no library")
    print("\n".join(faults) or f"{checked} files need glibc {'.'.join(map(str, newest))} and no other library")
    sys.exit(1 if faults else 0)


main()
