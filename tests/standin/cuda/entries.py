"""Writes the exported functions of the stand-in: every function that the installed cuda.h declares, by its real name.

    entries.py --header PREPROCESSED --typedefs cudaTypedefs.h cudaProfilerTypedefs.h --out-dir DIR

PREPROCESSED is cuda.h after the preprocessor with __CUDA_API_VERSION_INTERNAL, which makes it declare every version by
the name in the library. Written are
    driver.h    declares standin::NAME for each function (without _ptsz and _ptds): what the stand-in implements;
    entries.cc  the exported functions, each of which passes its Entry and then calls standin::NAME; a weak
                standin::NAME for what is not implemented; and the table behind cuGetProcAddress.
"""

import argparse
import pathlib
import re

PER_THREAD = re.compile(r"_pt(?:sz|ds)$")


def read_functions(text):
    """{name: parameters as declared}"""
    declaration = re.compile(r"\bCUresult\s+(cu\w+)\s*\(([^()]*)\)\s*;")
    return {name: " ".join(parameters.split()) for name, parameters in declaration.findall(text)}


def argument_names(parameters):
    if parameters in ("", "void"):
        return []
    return [re.search(r"(\w+)\s*(?:\[[^\]]*\])?$", p.strip())[1] for p in parameters.split(",")]


def read_versions(text):
    """{(base name, suffix): [version, …] in ascending order}; suffix is "", "_ptsz" or "_ptds"."""
    versions = {}
    for name, version, suffix in re.findall(r"\(\s*CUDAAPI\s*\*\s*PFN_(cu\w+?)_v(\d+)(_pt(?:sz|ds))?\s*\)", text):
        versions.setdefault((name, suffix), set()).add(int(version))
    return {key: sorted(values) for key, values in versions.items()}


def symbol_of(name, version, plain_versions, functions):
    """The symbol of `name` since `version`."""
    place = plain_versions.index(version) + 1
    for candidate in ([name] if place == 1 else []) + [f"{name}_v{place}", name]:
        if candidate in functions:
            return candidate
    raise SystemExit(f"no symbol for {name} of version {version}")


def lookup_table(functions, versions):
    """(base name, version, per thread?, symbol) of all that exist."""
    rows = []
    for (name, suffix), its_versions in versions.items():
        plain = versions[name, ""]
        for version in its_versions:
            since = max([v for v in plain if v <= version], default=plain[0])
            symbol = symbol_of(name, since, plain, functions) + suffix
            if symbol not in functions:
                raise SystemExit(f"no symbol {symbol} for {name} of version {version}")
            rows.append((name, version, bool(suffix), symbol))
    return sorted(rows)


def driver_header(functions):
    lines = ["// Generated: what the stand-in implements behind the exported names.", "#pragma once", "",
             '#include "cuda_api.h"', "", "namespace standin {"]
    lines += [f"CUresult {name}({parameters});" for name, parameters in functions.items() if not PER_THREAD.search(name)]
    return "\n".join(lines + ["}  // namespace standin", ""])


def entries_source(functions, rows):
    lines = ["// Generated: the exported functions.", '#include "driver.h"', '#include "entry.h"', '#include "lookup.h"',
             "", "namespace standin {"]
    for name, parameters in functions.items():
        if not PER_THREAD.search(name):
            lines.append(f'__attribute__((weak)) CUresult {name}({parameters}) {{ return Unsupported("{name}"); }}')
    names = list(functions)
    lines += [f"EntryState entries[] = {{{', '.join(f'{{{chr(34)}{name}{chr(34)}}}' for name in names)}}};",
              f"const size_t entry_count = {len(names)};", "}  // namespace standin", "", 'extern "C" {']
    for index, (name, parameters) in enumerate(functions.items()):
        per_thread = "true" if PER_THREAD.search(name) else "false"
        call = f"standin::{PER_THREAD.sub('', name)}({', '.join(argument_names(parameters))})"
        lines.append(f'__attribute__((visibility("default"))) CUresult {name}({parameters}) {{\n'
                     f"  standin::Entry entry(standin::entries[{index}], {per_thread});\n"
                     f"  return entry.refused() ? entry.result() : {call};\n}}")
    lines += ["}", "", "namespace standin {", "const Symbol symbols[] = {"]
    lines += [f'    {{"{name}", {version}, {str(per_thread).lower()}, reinterpret_cast<void*>(&::{symbol})}},'
              for name, version, per_thread, symbol in rows]
    lines += ["};", f"const size_t symbol_count = {len(rows)};", "}  // namespace standin", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--header", required=True, type=pathlib.Path)
    parser.add_argument("--typedefs", required=True, type=pathlib.Path, nargs="+")
    parser.add_argument("--out-dir", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    functions = read_functions(arguments.header.read_text())
    rows = lookup_table(functions, read_versions("\n".join(file.read_text() for file in arguments.typedefs)))
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    (arguments.out_dir / "driver.h").write_text(driver_header(functions))
    (arguments.out_dir / "entries.cc").write_text(entries_source(functions, rows))


if __name__ == "__main__":
    main()
