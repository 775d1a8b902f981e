#!/usr/bin/env python3
"""Writes the CUDA shim's wrappers and tables from registry/cuda/functions.toml and the installed headers.

    cuda.py --registry FILE --headers DIR --compiler CC --out DIR     writes
        functions.h, functions.cc   the table of the driver's functions, and their names
        wrappers.h, wrappers.cc     one exported function per wrapped function, version and variant, and the tables of them
        shimcuda.map                what the shim exports
        coverage.txt                the report, which is printed as well
    cuda.py --registry FILE --headers DIR --compiler CC --check       exit status 1 if a function of the headers is not classified

A function of the driver has three names:
    cuMemcpyHtoD               its symbol: what programs write, ask cuGetProcAddress for, and the registry lists;
    cuMemcpyHtoD_v2_ptds       an export: one ABI, and one meaning of the default stream;
    PFN_cuMemcpyHtoD_v7000_ptds   the type of such an ABI, with the version of CUDA that brought it (cudaTypedefs.h).
The headers do not say which type is which export's: they are so in order, per symbol and variant, and the compiler checks
each pair.
"""

import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass

from c_headers import Function, HeaderReader
from c_text import address, arguments, generated_by, signature, write_functions_h, write_map, write_names
from command_line import no_faults, run
from coverage import Coverage
from registry import Registry, RegistryError
from roles import check_streams
from scopes import Scopes

GENERATED = generated_by("cuda")

# With this, cuda.h declares every export under its own name, old versions included.
EVERY_VERSION = "__CUDA_API_VERSION_INTERNAL"


# ---- reading ----

@dataclass(frozen=True)
class Export:
    symbol: str
    version: int  # of CUDA, as in cuGetProcAddress
    per_thread: bool  # the default stream is the calling thread's own
    type: str
    function: Function

    @property
    def name(self):
        return self.function.name


def preprocess(compiler, directory):
    command = [compiler, "-E", "-P", f"-D{EVERY_VERSION}", f"-I{directory}", "-xc", "-"]
    try:
        return subprocess.run(command, input="#include <cudaTypedefs.h>", check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        raise RegistryError(f"{directory}: {error.stderr}") from error


def read_types(text):
    """(symbol, is it per thread) -> [(version, name of the type)], in order."""
    types = defaultdict(list)
    for name, symbol, version, variant in re.findall(r"\*\s*(PFN_(cu[A-Z]\w*?)_v(\d+)(_pts?d?[sz])?)\)", text):
        types[symbol, bool(variant)].append((int(version), name))
    return {key: sorted(found) for key, found in types.items()}


def read_exports(text):
    """(symbol, is it per thread) -> [Function], in order of their versions."""
    exports = defaultdict(list)
    for name, function in HeaderReader(r"cu[A-Z]\w*", r"__attribute__").read(text, "cuda.h").items():
        symbol, version, variant = re.fullmatch(r"(\w+?)(?:_v(\d+))?(_ptds|_ptsz)?", name).groups()
        exports[symbol, bool(variant)].append((int(version or 1), function))
    return {key: [function for _, function in sorted(found, key=lambda pair: pair[0])] for key, found in exports.items()}


def read_symbols(compiler, directory):
    """symbol -> [Export]"""
    text = preprocess(compiler, directory)
    types, symbols = read_types(text), defaultdict(list)
    for (symbol, per_thread), functions in read_exports(text).items():
        of_symbol = types.get((symbol, per_thread), [])
        if len(of_symbol) != len(functions):
            raise RegistryError(f"{symbol}: {len(functions)} exports, but {len(of_symbol)} types")
        for function, (version, type_name) in zip(functions, of_symbol):
            symbols[symbol].append(Export(symbol, version, per_thread, type_name, function))
    return symbols


# ---- writing ----

def write_exported_functions_h(exports):
    return write_functions_h(
        GENERATED, "cuda", "The functions of the driver that XSched wraps or calls, as they are exported; null: this driver has none such.",
        '#include "hal/cuda/cu.h"', [f"{e.type} {e.name};" for e in exports],
        names="The functions' names, in the order of the members, which is alphabetical.")


def write_functions_cc(exports):
    checks = "\n".join(f"static_assert(std::is_same_v<{e.type}, decltype(&::{e.name})>);" for e in exports)
    return f"""{GENERATED}#include "cuda/functions.h"

#include <type_traits>

// The types are those of the exports.
{checks}

{write_names("cuda", [e.function for e in exports])}"""


def write_wrapper(scopes, export, entry, index):
    function = export.function
    lines = [f"Call call({index}, __builtin_return_address(0));",
             f"auto next = call.next().{function.name};",
             "if (next == nullptr) [[unlikely]] return CUDA_ERROR_NOT_FOUND;",
             *scopes.write(export, entry, f"next({arguments(function)})")]
    body = "\n".join("  " + line for line in lines)
    return f"""// {entry.kind}, {export.version}
XSCHED_EXPORT {function.result} {function.name}({signature(function)}) {{
{body}
}}
"""


def write_wrappers_cc(registry, functions, wrapped, untouched):
    scopes = Scopes(registry, "CUDA_SUCCESS")
    index = {e.name: i for i, e in enumerate(functions)}
    entries = {e.name: entry for e, entry in wrapped}
    wrappers = "\n".join(write_wrapper(scopes, e, entry, index[e.name]) for e, entry in wrapped)
    rows = "\n".join(f"    {address(f'::{e.name}') if e.name in entries else 'nullptr'}," for e in functions)
    passing = "\n".join(f'    "{symbol}",' for symbol in untouched)
    by_version = sorted((e for e, _ in wrapped), key=lambda e: (e.symbol, e.per_thread, e.version))
    versions = "\n".join(f'    {{"{e.symbol}", {e.version}, {str(e.per_thread).lower()}, {index[e.name]}}},'
                         for e in by_version)
    return f"""{GENERATED}#include "cuda/wrappers.h"

#include "shim/cuda/code.h"
#include "shim/cuda/commands.h"
#include "shim/cuda/contexts.h"
#include "shim/cuda/events.h"
#include "shim/cuda/lookup.h"
#include "shim/cuda/streams.h"

using namespace xsched::cuda;

#define XSCHED_EXPORT __attribute__((visibility("default")))

extern "C" {{

{wrappers}
}}  // extern "C"

namespace xsched::cuda {{

void* const kWrappers[kFunctionCount] = {{
{rows}
}};

const Version kVersions[kVersionCount] = {{
{versions}
}};

const char* const kUntouched[kUntouchedCount] = {{
{passing}
}};

}}  // namespace xsched::cuda
"""


def write_wrappers_h(wrapped, untouched):
    return f"""{GENERATED}#pragma once

#include "cuda/functions.h"

namespace xsched::cuda {{

// In the order of kFunctionNames; null: not wrapped.
extern void* const kWrappers[kFunctionCount];

// What cuGetProcAddress knows a wrapped function as.
struct Version {{
  const char* symbol;
  int version;      // of CUDA, that brought this ABI
  bool per_thread;  // its default stream is the calling thread's own
  int function;     // index in kFunctionNames
}};

// By symbol, then per_thread, then version.
inline constexpr int kVersionCount = {len(wrapped)};
extern const Version kVersions[kVersionCount];

// Symbols of functions that are known to pass, in alphabetical order.
inline constexpr int kUntouchedCount = {len(untouched)};
extern const char* const kUntouched[kUntouchedCount];

}}  // namespace xsched::cuda
"""


WHY_NO_VERSION = [
    "The wrappers have no version, as the driver's functions have none. All else is compiled hidden, but for what the C++",
    "language makes visible. dlsym has the version under which programs look for it; the older one is in dl_hooks.map.",
]


def files(registry, coverage):
    every = {e.name: e for exports in coverage.functions.values() for e in exports}
    wrapped = [(e, entry) for symbol, entry in coverage.wrapped for e in coverage.functions[symbol]]
    wrapped.sort(key=lambda pair: pair[0].name)
    unknown = [name for name in registry.own_calls if registry.entries.get(re.sub(r"_v\d+$", "", name)) is None]
    if unknown:
        raise RegistryError(f"own calls that are not classified: {', '.join(unknown)}")
    own = [every[name] for name in registry.own_calls if name in every]
    functions = sorted({e.name: e for e in [*(e for e, _ in wrapped), *own]}.values(), key=lambda e: e.name)
    return {
        "functions.h": write_exported_functions_h(functions),
        "functions.cc": write_functions_cc(functions),
        "wrappers.h": write_wrappers_h(wrapped, coverage.untouched),
        "wrappers.cc": write_wrappers_cc(registry, functions, wrapped, coverage.untouched),
        "shimcuda.map": write_map("cuda", WHY_NO_VERSION),
        "coverage.txt": "\n".join(coverage.report()) + "\n",
    }


def generate(options):
    registry = Registry(options.registry)
    symbols = read_symbols(options.compiler, options.headers)
    check_streams(registry, symbols, "CUstream")
    coverage = Coverage("CUDA", registry, symbols)
    return coverage, lambda: files(registry, coverage), no_faults


if __name__ == "__main__":
    run("Generates the CUDA shim.", "the folder that has cuda.h", generate,
        lambda parser: parser.add_argument("--compiler", required=True, help="a C compiler, to preprocess the headers"))
