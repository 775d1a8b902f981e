#!/usr/bin/env python3
"""Checks that a library is fit for foreign processes (docs/design.md, the end of "Interposition").

  check_library.py LIBRARY --map FILE… --private HEADER|FOLDER… --needs NAME…
  check_library.py LIBRARY --exports PATTERN… --needs NAME…

Checks:
- its exports: the names of its version scripts one by one, and what its headers mark with XSCHED_PRIVATE; or only names that match,
  and each pattern matches at least one;
- what it needs at run time: only the C library and the given names; the newest glibc version; its flags;
- that no symbol of the C++ runtime is in its symbol table, and that loading it only registers exit handlers;
- that its tables are zero pages until they are used.
"""

import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys

NEWEST_GLIBC = (2, 34)
MOST_DATA = 1 << 16  # bytes of initialized data, which become private memory of a program when written
PRIVATE = "XSCHED_PRIVATE"
C_LIBRARY = ["libc.so.6", "ld-linux*.so.*"]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(library, *options):
    """Names with their versions; the versions' own symbols are absolute (A)."""
    lines = (line.split(maxsplit=2) for line in run("nm", "-D", "--defined-only", *options, library).splitlines())
    return {tuple(re.split("@+", words[2])) for words in lines if words[1] not in "Aa"}


def listed(version_script):
    """Pairs of a name and a version, those of C++ as nm -C has them."""
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(version_script).read_text(encoding="utf-8"), flags=re.S)
    # Nodes end before the next one begins; braces within them are those of extern "C++".
    for version, body in re.findall(r"^([\w.]+) \{(.*?)^\}", text, flags=re.S | re.M):
        exported = re.sub(r"\blocal:.*", "", body, flags=re.S)
        for quoted, plain in re.findall(r'"([^"]+)";|([^\s;:{}"]+);', exported):
            yield quoted or plain, version


def marked(headers):
    """The names, without their namespaces, of the functions and variables that headers mark with XSCHED_PRIVATE."""
    for path in headers:
        for header in path.rglob("*.h") if path.is_dir() else [path]:
            text = header.read_text(encoding="utf-8")
            yield from re.findall(r"^ *XSCHED_PRIVATE (?!extern)[^;{]*?(\w+)\(", text, flags=re.M)
            yield from re.findall(r"^ *XSCHED_PRIVATE extern [^;({]*?(\w+)(?:\s+__attribute__|;)", text, flags=re.M)


def check_private(library, headers):
    """What is exported to our other libraries."""
    names = {re.sub(r"\(.*", "", name).split("::")[-1] for name, *versions in exports(library, "-C") if versions == [PRIVATE]}
    expected = set(marked(headers))
    yield from (f"exports {name} ({PRIVATE}), which no header marks" for name in sorted(names - expected))
    yield from (f"does not export {name} ({PRIVATE}), which a header marks" for name in sorted(expected - names))


def check_maps(library, version_scripts):
    """What is in the list and nowhere is a mistake in it; so is a pattern, which exports what nobody has named."""
    names = {pair for pair in exports(library, "-C") if pair[1:] != (PRIVATE,)}
    expected = {pair for script in version_scripts for pair in listed(script)}
    for name, version in sorted(names - expected):
        yield f"exports {name} ({version}), which {version_scripts} does not list"
    for name, version in sorted(expected - names):
        yield f"does not export {name} ({version}), which {version_scripts} lists"


def check_exports(library, patterns):
    names = {name for name, *_ in exports(library)}
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
    """A single nonzero number in a large array puts the whole array into the file."""
    size = int(re.search(r"^\.data\s+(\d+)", run("size", "-A", library), flags=re.M)[1])
    if size > MOST_DATA:
        yield f"has {size} bytes of .data"


def check_initializers(library):
    """Loading may register destructors. Nothing else may happen before the program calls the library."""
    disassembly = run("objdump", "-dC", "--no-show-raw-insn", library)
    for name in re.findall(r"^[0-9a-f]+ <(_GLOBAL__sub_I_[^>]*)>:", disassembly, flags=re.M):
        body = re.search(rf"<{re.escape(name)}>:\n(.*?)(?:\n\n|\Z)", disassembly, flags=re.S)[1]
        for callee in re.findall(r"(?:call|jmp)q?\s+[0-9a-f]+ <([^>+]*)", body):
            if callee != name and not re.fullmatch(r"(__cxa_)?atexit(@.*)?", callee):
                yield f"calls {callee} when it is loaded ({name})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--exports", nargs="+", help="patterns (*, ?) of names")
    parser.add_argument("--map", nargs="+", help="its version scripts")
    parser.add_argument("--private", nargs="*", type=pathlib.Path, default=[], help="where its headers are")
    parser.add_argument("--needs", nargs="*", default=[], help="patterns of libraries of ours")
    options = parser.parse_args()
    dynamic = run("readelf", "-dW", options.library)
    exported = check_maps(options.library, options.map) if options.map else check_exports(options.library, options.exports)
    faults = [*exported, *check_private(options.library, options.private), *check_needs(dynamic, options.needs),
              *check_versions(options.library), *check_flags(options.library, dynamic), *check_data(options.library),
              *check_initializers(options.library)]
    for fault in faults:
        print(f"{options.library} {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
