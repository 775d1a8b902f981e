#!/usr/bin/env python3
"""Writes the HIP shim's wrappers and tables from registry/hip/. No header of AMD's is needed.

    hip.py --registry DIR --out DIR     writes
        functions.h, functions.cc   the table of a runtime's functions, and their names
        wrappers.h, wrappers.cc     one plain function per wrapped function, its ways in, and the tables of them
        shimhip.map                 what the shim exports
        coverage.txt                the report, which is printed as well
        standin.inc, own_names.h    for a stand-in of the runtime: its wrapped functions, and names for its own
    hip.py --registry DIR --check       exit status 1 if a function that AMD's libraries export is not classified, or one of
                                        stream_functions.txt is not of the kinds that are said there
    hip.py --registry DIR --headers DIR --check     also, if one that installed headers declare is not classified, or has other
                                        parameters than the registry says

A function has a name (what programs write, and the registry lists) and exports:
    hipLaunchKernel         itself
    hipLaunchKernel_spt     the same, where the null stream is the calling thread's own
    _Z24hipExtModule…       the same as hipExtModuleLaunchKernel, as C++ names it
"""

import argparse
import pathlib
import re
import sys
from collections import defaultdict
from dataclasses import dataclass

from c_headers import Function, HeaderReader
from c_text import address, arguments, signature, write_names
from coverage import Coverage
from hip_headers import differing_signatures, read_headers
from registry import Registry, RegistryError
from roles import Roles, check_streams
from scopes import Scopes

GENERATED = "// Written by codegen/hip.py from registry/hip/: edit that.\n"

# As many runtime instances have ways in of their own: shim/hip/instances.h.
INSTANCES = 8

# What a function returns, and what it returns where a runtime instance has none such.
RESULTS = {"hipError_t": " kNoSuchFunction", "int": " -1", "const char*": " nullptr", "void": ""}


# ---- reading ----

@dataclass(frozen=True)
class Export:
    symbol: str  # as the library exports it
    since: str  # the version of HIP that brought it, as the symbol's version
    per_thread: bool  # the default stream is the calling thread's own
    function: Function

    @property
    def name(self):
        """A name for C++: the symbol, unless that is a mangled one."""
        return self.function.name


def read_exports(directory):
    """symbol -> version, of all libraries that are known."""
    exports = {}
    for path in sorted(directory.glob("exports-*.txt")):
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                symbol, version = line.split()
                exports.setdefault(symbol, version)
    if not exports:
        raise RegistryError(f"{directory}: no exports-*.txt")
    return exports


def read_dispatch_table(directory):
    lines = (directory / "dispatch_table.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", "step "))]


def name_of(symbol, exports):
    """The name by which the registry lists an export."""
    mangled = re.match(r"_ZN8hip_impl(\d+)|_Z(\d+)", symbol)
    if mangled:
        return symbol[mangled.end():mangled.end() + int(mangled[1] or mangled[2])]
    twin = symbol.removesuffix("_spt")
    return twin if twin in exports else symbol


def read_functions(registry, exports):
    """name -> [Export]"""
    functions = defaultdict(list)
    for symbol, since in sorted(exports.items()):
        name = name_of(symbol, exports)
        entry = registry.entries.get(name)
        text = entry.details.get("c") if entry else None
        if entry and entry.wrapped and text is None:
            raise RegistryError(f"{name} is wrapped, but has no parameters (c)")
        unique = name + "_cxx" if symbol.startswith("_Z") else symbol
        returns = entry.details.get("returns", "hipError_t") if entry else "hipError_t"
        function = Function(unique, returns, HeaderReader.parameters(text or ""), "libamdhip64")
        functions[name].append(Export(symbol, since, symbol.endswith("_spt"), function))
    return functions


# ---- writing ----

def write_types(types):
    enums = "\n".join(f"using {name} = unsigned;" for name in types["enums"])
    handles = "\n".join(f"using {name} = void*;" for name in types["handles"])
    structures = "\n".join(f"struct {name};" for name in types["structures"])
    return f"{enums}\n{handles}\n{structures}"


def write_functions_h(registry, exports):
    members = "\n".join(f"  {e.function.result} (*{e.name})({signature(e.function)});" for e in exports)
    return f"""{GENERATED}// The functions of one runtime instance that XSched wraps; null: it has none such.
#pragma once

#include "hal/hip/hip_abi.h"

namespace xsched::hip {{

// What is only passed on.
{write_types(registry.types)}

struct WrappedFunctions {{
{members}
}};

inline constexpr int kFunctionCount = {len(exports)};
static_assert(sizeof(WrappedFunctions) == kFunctionCount * sizeof(void*));

// The symbols that they are exported as, in the order of the members.
extern const char* const kFunctionNames[kFunctionCount];

}}  // namespace xsched::hip
"""


def write_functions_cc(exports):
    return f"""{GENERATED}#include "hip/functions.h"

{write_names("hip", [Function(e.symbol, "", (), "") for e in exports])}"""


class Handles:
    """What a call goes by to the runtime instance that made what it is about."""

    def __init__(self, registry):
        self._types, self._code, self._not_new = (registry.handles[key] for key in ("types", "code", "not_new"))

    def used(self, export, entry):
        """Expressions, of which the first that an instance is known for decides."""
        found = defaultdict(list)
        for p in export.function.parameters:
            if p.type in self._types:
                found[p.type].append(f"Handle({p.name})")
            elif p.type == "const void*" and p.name in self._code:
                found["code"].append(f"Code({p.name})")
        if "code" in entry.details:
            found["code"] = [f"Code({entry.details['code']})"]
        if "handle" in entry.details:
            found[self._types[0]] = [f"Handle({entry.details['handle']})"]
        return [expression for type_name in self._types for expression in found[type_name]]

    def new(self, export):
        return [p.name for p in export.function.parameters
                if p.type.endswith("*") and p.type[:-1] in self._types and p.name not in self._not_new]


def write_wrapper(scopes, handles, index, export, entry):
    function = export.function
    # The program's own parameters stay where they are.
    parameters = ", ".join([p.declaration for p in function.parameters] + ["Target target", "const void* site"])
    uses, ends = handles.used(export, entry), entry.details.get("ends")
    lines = [f"Call call(target, {index}, site);"]
    lines += [f"call.Uses({', '.join(uses)});"] if uses else []
    lines += [f"auto next = call.next().{export.name};",
              f"if (next == nullptr) [[unlikely]] next = call.exported().{export.name};",
              f"if (next == nullptr) return{RESULTS[function.result]};"]
    lines += scopes.write(export, entry, f"next({arguments(function)})", [f"call.Ends({ends});"] if ends else [],
                          [f"call.Made({name});" for name in handles.new(export)])
    body = "\n".join("  " + line for line in lines)
    return f"""// {entry.kind}, since {export.since}
[[gnu::noinline]] {function.result} On_{export.name}({parameters}) {{
{body}
}}
"""


def write_way(export, target, static):
    passed = "".join(p.name + ", " for p in export.function.parameters)
    return f"""{static}{export.function.result} {export.name}({signature(export.function)}) {{
  return On_{export.name}({passed}{target}, __builtin_return_address(0));
}}"""


def write_export(export):
    symbol = f' __asm__("{export.symbol}")' if export.symbol != export.name else ""
    declared = f"{export.function.result} {export.name}({signature(export.function)}){symbol};\n" if symbol else ""
    return f"{declared}XSCHED_EXPORT {write_way(export, 'ByLinking(__builtin_return_address(0))', '')}\n"


def write_row(export):
    ways = "".join(f"\n      {address(f'Way<{i}>::{export.name}')}," for i in range(INSTANCES))
    return f"    {{{address(f'::{export.name}')}, {{{ways}}}}},"


def write_wrappers_cc(registry, wrapped, table):
    scopes, handles = Scopes(registry, "hipSuccess"), Handles(registry)
    index = {e.symbol: i for i, (e, _) in enumerate(wrapped)}
    wrappers = "\n".join(write_wrapper(scopes, handles, i, e, entry) for i, (e, entry) in enumerate(wrapped))
    ways = "\n".join(write_way(e, "ByPointer(instances[kInstance])", "static ") for e, _ in wrapped)
    exports = "\n".join(write_export(e) for e, _ in wrapped)
    rows = "\n".join(write_row(e) for e, _ in wrapped)
    patched = {e.symbol for e, entry in wrapped if entry.kind != "lookup"}
    entries = "\n".join(f'    {{"{name}", {index[name] if name in patched else -1}}},' for name in table)
    return f"""{GENERATED}#include "hip/wrappers.h"

#include "shim/hip/commands.h"
#include "shim/hip/devices.h"
#include "shim/hip/events.h"
#include "shim/hip/lookup.h"
#include "shim/hip/streams.h"

namespace xsched::hip {{

static_assert(kMaxInstances == {INSTANCES});

// ---- the wrappers ----

{wrappers}
// ---- the ways in: by a pointer, one set per runtime instance … ----

template <int kInstance>
struct Way {{
{ways}
}};

}}  // namespace xsched::hip

// ---- … and as exported functions, where the caller decides ----

using namespace xsched::hip;

#define XSCHED_EXPORT __attribute__((visibility("default")))

extern "C" {{

{exports}
}}  // extern "C"

namespace xsched::hip {{

const Wrapper kWrappers[kFunctionCount] = {{
{rows}
}};

const TableEntry kTable[kTableLength] = {{
{entries}
}};

}}  // namespace xsched::hip
"""


def write_wrappers_h(table):
    return f"""{GENERATED}#pragma once

#include "hip/functions.h"
#include "shim/hip/instances.h"

namespace xsched::hip {{

struct Wrapper {{
  void* exported;
  void* by_pointer[kMaxInstances];
}};

// In the order of kFunctionNames.
extern const Wrapper kWrappers[kFunctionCount];

// The runtime's dispatch table as it offers it to tools, behind its size.
struct TableEntry {{
  const char* name;
  int function;  // index in kWrappers; -1: its entry stays as it is
}};
inline constexpr int kTableLength = {len(table)};
extern const TableEntry kTable[kTableLength];

}}  // namespace xsched::hip
"""


def write_map():
    return """/* Written by codegen/hip.py.
 *
 * The wrappers have no version: they then stand for any that a program asks for (hip_4.2 and so on). All else is compiled
 * hidden, but for what the C++ language makes visible; _ZN8hip_impl is the runtime's. dlsym has the version under which
 * programs look for it; the older one is in dl_hooks.map.
 */
GLIBC_2.34 { global: dlsym; dlclose; local: _Z[A-MO-Za-z]*; _ZN[!8]*; __cxa_*; xsched_*; XSched*; };
"""


def write_standin(registry, wrapped, table):
    """XSCHED_FUNCTION(result, name, symbol, parameters, arguments, is it a launch, its stream) for each; the dispatch table."""
    roles = Roles(registry)

    def row(export, entry):
        launches = entry.is_launch and "stream" in registry.kinds[entry.kind].get("takes", [])
        stream = roles.of("stream", export, entry) if launches else "nullptr"
        function = export.function
        return (f"XSCHED_FUNCTION({function.result}, {export.name}, \"{export.symbol}\", ({signature(function)}), "
                f"({arguments(function)}), {int(launches)}, ({stream}))\n")

    rows = "".join(row(e, entry) for e, entry in wrapped)
    entries = "".join(f"XSCHED_TABLE_ENTRY({name})\n" for name in table)
    return f"""{GENERATED}#ifdef XSCHED_FUNCTION
{rows}#endif
#ifdef XSCHED_TABLE_ENTRY
{entries}#endif
"""


def write_own_names(wrapped):
    return GENERATED + "#pragma once\n\n" + "".join(f"#define {e.name} Own_{e.name}\n" for e, _ in wrapped)


def files(registry, coverage, table):
    wrapped = [(e, entry) for name, entry in coverage.wrapped for e in coverage.functions[name]]
    wrapped.sort(key=lambda pair: pair[0].symbol)
    exports = [e for e, _ in wrapped]
    return {
        "functions.h": write_functions_h(registry, exports),
        "functions.cc": write_functions_cc(exports),
        "wrappers.h": write_wrappers_h(table),
        "wrappers.cc": write_wrappers_cc(registry, wrapped, table),
        "shimhip.map": write_map(),
        "standin.inc": write_standin(registry, wrapped, table),
        "own_names.h": write_own_names(wrapped),
        "coverage.txt": "\n".join(coverage.report()) + "\n",
    }


# ---- checks ----

def wrong_kinds(registry, functions, path):
    """What stream_functions.txt says against the registry: sections of "[title]: kinds", then names of exports."""
    exported = {e.symbol: name for name, exports in functions.items() for e in exports}
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        section = re.match(r"\[(.*)\]: (.*)", line)
        if section:
            title, kinds = section[1], section[2].split()
            continue
        for symbol in line.split():
            entry = registry.entries.get(exported.get(symbol))
            if entry is None or entry.kind not in kinds:
                yield f"{symbol} is {entry.kind if entry else 'not known'}, but {title}"


def faults(registry, functions, options):
    """Sentences on what is wrong, beside what the coverage tells."""
    yield from wrong_kinds(registry, functions, options.registry / "stream_functions.txt")
    if options.headers:
        declared = read_headers(options.headers)
        yield from (f"{name} is declared, but not classified" for name in sorted(set(declared) - set(registry.entries)))
        yield from differing_signatures(functions, declared)


# ---- the command line ----

def main():
    parser = argparse.ArgumentParser(description="Generates the HIP shim.")
    parser.add_argument("--registry", type=pathlib.Path, required=True, help="the folder registry/hip")
    parser.add_argument("--headers", type=pathlib.Path, help="the folder hip of installed headers, to be checked against")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        registry = Registry(options.registry / "functions.toml")
        functions = read_functions(registry, read_exports(options.registry))
        check_streams(registry, functions, "hipStream_t")
        coverage = Coverage("HIP", registry, functions, "the libraries")
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            for name, text in files(registry, coverage, read_dispatch_table(options.registry)).items():
                (options.out / name).write_text(text)
        wrong = list(faults(registry, functions, options)) if options.check else []
    except RegistryError as error:
        sys.exit(f"codegen: {error}")
    print("\n".join(coverage.report() + wrong))
    if wrong or (options.check and not (coverage.is_complete() and not coverage.absent)):
        sys.exit(1)


if __name__ == "__main__":
    main()
