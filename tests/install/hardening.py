#!/usr/bin/env python3
"""Checks that each installed program and library has what cmake/hardening.cmake asks for.

  hardening.py BUILD COMPILER      COMPILER: with which BUILD was compiled
"""
import pathlib
import re
import subprocess
import sys
import tempfile

CONTROL_FLOW = re.compile(r"x86 feature: IBT, SHSTK|AArch64 feature: BTI")


def read(file, *options):
    return subprocess.run(["readelf", "--wide", *options, file], check=True, capture_output=True, text=True).stdout


def has_protected_parts(compiler):
    """Whether a library can have the processor's protection of control flow: what the compiler adds to each one must have it, too."""
    names = (subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
             for name in ("crti.o", "crtbeginS.o", "libgcc.a"))
    return all(CONTROL_FLOW.search(read(name, "--notes")) for name in names)


def faults(file, with_control_flow):
    """What the file lacks."""
    text = read(file, "--file-header", "--segments", "--dynamic", "--notes", "--dyn-syms")
    symbols = re.findall(r" UND (\w+)", text)
    if not re.search(r"Type: +DYN", text):
        yield "is not position-independent"
    if "GNU_RELRO" not in text or not re.search(r"\(FLAGS(_1)?\).*NOW", text):
        yield "has tables of addresses that stay writable (-z relro -z now)"
    if re.search(r"GNU_STACK.* RWE ", text):
        yield "has a stack that can be executed"
    if "(TEXTREL)" in text:
        yield "has code that is changed when it is loaded"
    if any(not path.startswith("$ORIGIN") for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]", text)):
        yield "looks for libraries in a folder that is not its own"
    if "__stack_chk_fail" not in symbols:
        yield "has no function with a protected stack (-fstack-protector-strong)"
    if with_control_flow and not CONTROL_FLOW.search(text):
        yield "takes the processor's protection of control flow from programs (-fcf-protection, -mbranch-protection)"
    if re.search(r" UND (memcpy|memmove|memset|strcpy|snprintf|read|recv)@", text) and not any(name.endswith("_chk") for name in symbols):
        yield "copies without a check of sizes (_FORTIFY_SOURCE)"


def main():
    checked, found = 0, []
    with_control_flow = has_protected_parts(sys.argv[2])
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", sys.argv[1], "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        for file in sorted(pathlib.Path(prefix).rglob("*")):
            if file.is_symlink() or not file.is_file() or file.open("rb").read(4) != b"\x7fELF":
                continue
            checked += 1
            found += [f"{file.relative_to(prefix)} {fault}" for fault in faults(file, with_control_flow)]
    if not checked:
        found.append("nothing is installed")
    print("\n".join(found) or f"{checked} files are hardened")
    sys.exit(1 if found else 0)


main()
