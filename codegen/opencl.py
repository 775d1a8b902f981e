#!/usr/bin/env python3
"""Writes the OpenCL shim's wrappers and tables from registry/opencl/functions.toml and the installed CL headers.

    opencl.py --registry FILE --headers DIR --out DIR     writes
        functions.h, functions.cc   the table of the next functions, and their names
        wrappers.h, wrappers.cc     one plain function per wrapped function, its ways in, and the table of them
        shimopencl.map              what the shim exports
        coverage.txt                the report, which is printed as well
    opencl.py --registry FILE --headers DIR --check       exit status 1 if a function of the headers is not classified
"""

import re
from dataclasses import dataclass

from c_headers import Function, HeaderReader
from c_text import address, arguments, generated_by, run, signature, with_first, write_names
from coverage import Coverage
from registry import Registry, RegistryError
from roles import Roles
from scopes import Scopes

# As many instances of OpenCL in one process as calls can be wrapped for: shim/opencl/routes.h.
ROUTES = 8

# Headers that compile everywhere; functions of the others (Direct3D, VA-API) are wrapped if they need no types of theirs.
PORTABLE_HEADERS = ("cl.h", "cl_ext.h", "cl_gl.h", "cl_egl.h")
NOT_FUNCTIONS = ("cl_icd.h", "cl_layer.h", "cl_platform.h", "cl_half.h", "cl_version.h", "opencl.h", "cl_function_types.h")
PLAIN_TYPES = set("void char int long short unsigned signed const size_t intptr_t uintptr_t float double".split())

GENERATED = generated_by("opencl")


# ---- reading ----

@dataclass(frozen=True)
class Export:
    function: Function
    per_thread = False  # OpenCL has no default queues

    @property
    def name(self):
        return self.function.name


def read_headers(directory):
    reader = HeaderReader(r"cl[A-Z]\w*", r"CL_API_ENTRY|CL_API_CALL|CL_CALLBACK|CL_(?:API|EXT)_(?:SUFFIX|PREFIX)_\w+")
    functions = {}
    for path in sorted(directory.glob("*.h")):
        if path.name not in NOT_FUNCTIONS:
            for name, function in reader.read(path.read_text(), path.name).items():
                functions.setdefault(name, function)
    return functions


def read_dispatch_members(directory):
    """The functions in the table that the ICD loader hands to layers."""
    text = (directory / "cl_icd.h").read_text()
    body = re.search(r"typedef struct _cl_icd_dispatch\s*\{(.*?)\}", text, re.S)[1]
    return set(re.findall(r"(cl[A-Z]\w*)\s*;", body))


def read_known_types(directory):
    words = set(PLAIN_TYPES)
    for name in PORTABLE_HEADERS + ("cl_platform.h",):
        words |= set(re.findall(r"\w+", (directory / name).read_text()))
    return words


# ---- deciding ----

class OpenCLCoverage(Coverage):
    def __init__(self, registry, functions, known_types):
        super().__init__("OpenCL", registry, functions)
        # To be wrapped, but of types that are not here.
        self.untyped = [name for name, _ in self.wrapped if not self._types_of(functions[name]) <= known_types]
        self.wrapped = [(Export(functions[name]), entry) for name, entry in self.wrapped if name not in self.untyped]

    @staticmethod
    def _types_of(function):
        text = function.result + " " + " ".join(p.type for p in function.parameters if p.type != "callback")
        return set(re.findall(r"[A-Za-z_]\w*", text))

    def is_complete(self):
        return super().is_complete() and not self.untyped

    def report(self):
        lines = super().report()
        if self.untyped:
            lines.append("  not wrapped for want of types: " + ", ".join(self.untyped))
        return lines


def check_launches(registry, wrapped):
    """A launch whose blocking flag or events were overlooked would be scheduled wrongly, silently."""
    roles = Roles(registry)
    for export, entry in wrapped:
        if not entry.is_launch:
            continue
        takes = [*registry.kinds[entry.kind]["takes"], "blocking", "event"]
        explained = {roles.of(role, export, entry) for role in takes}
        for parameter in export.function.parameters:
            if parameter.type in ("cl_bool", "cl_event*", "const cl_event*") and parameter.name not in explained:
                raise RegistryError(f"{export.name}: what is {parameter.declaration}?")


# ---- writing ----

def write_functions_h(functions):
    members = "\n".join(f"  {f.result} (CL_API_CALL* {f.name})({signature(f)});" for f in functions)
    return f"""{GENERATED}// The functions of one instance of OpenCL that XSched wraps or calls; null: it has none such.
#pragma once

#include <cstddef>

#include "hal/opencl/cl.h"

namespace xsched::opencl {{

struct Functions {{
{members}
}};

inline constexpr int kFunctionCount = {len(functions)};
static_assert(sizeof(Functions) == kFunctionCount * sizeof(void*));

// The functions' names, in the order of the members, which is alphabetical.
extern const char* const kFunctionNames[kFunctionCount];

}}  // namespace xsched::opencl
"""


def write_functions_cc(functions):
    return f"""{GENERATED}#include "opencl/functions.h"

{write_names("opencl", functions)}"""


def missing(function):
    """What a wrapper returns where the instance does not have the function."""
    if function.result == "cl_int":
        return "return CL_INVALID_OPERATION;"
    error = "*errcode_ret = CL_INVALID_OPERATION;" if function.parameter("errcode_ret") else ""
    return f"{{\n    if (errcode_ret != nullptr) {error}\n    return nullptr;\n  }}" if error else "return nullptr;"


def write_lookup(call, function, name):
    """The wrapper is the result: no scope could give that."""
    again = call.replace(name, "other")
    return [f"if (!call.is_the_programs()) return {call};",
            f"{function.result} result = {call};",
            f"return WrapLookedUp(route, {name}, result, [&](const char* other) {{ return {again}; }});"]


def write_wrapper(scopes, export, entry):
    function = export.function
    parameters = with_first("Route& route", signature(function) if function.parameters else "")
    call = f"next({arguments(function)})"
    lines = ["Call call(route);",
             f"auto next = call.next().{function.name};",
             f"if (next == nullptr) [[unlikely]] {missing(function)}"]
    lines += (write_lookup(call, function, entry.details["name"]) if entry.kind == "lookup"
              else scopes.write(export, entry, call))
    body = "\n".join("  " + line for line in lines)
    return f"""// {entry.kind}
{function.result} On_{function.name}({parameters}) {{
{body}
}}
"""


def write_way_in(function):
    return (f"  static {function.result} CL_API_CALL {function.name}({signature(function)}) {{\n"
            f"    return On_{function.name}({with_first('routes[kRoute]', arguments(function))});\n  }}\n")


def write_export(function):
    return (f'XSCHED_EXPORT {function.result} CL_API_CALL {function.name}({signature(function)}) {{\n'
            f"  return On_{function.name}({with_first('RouteOfCaller(__builtin_return_address(0))', arguments(function))});\n}}\n")


def write_row(function, is_wrapped, is_exported, in_dispatch):
    dispatch = f"offsetof(cl_icd_dispatch, {function.name})" if in_dispatch else "kNotInDispatch"
    exported = address(f"::{function.name}") if is_exported else "nullptr"
    via = "".join(f"\n      {address(f'Via<{i}>::{function.name}')}," for i in range(ROUTES)) if is_wrapped else ""
    return f"    // {function.name}\n    {{{dispatch}, {exported}, {{{via}}}}},\n"


def write_wrappers_cc(registry, functions, wrapped, exported, dispatch):
    by_name = {e.name for e, _ in wrapped}
    exported_names = {f.name for f in exported}
    scopes = Scopes(registry, "CL_SUCCESS", "Succeeded(result)")
    wrappers = "\n".join(write_wrapper(scopes, e, entry) for e, entry in wrapped)
    ways_in = "\n".join(write_way_in(e.function) for e, _ in wrapped)
    exports = "\n".join(write_export(f) for f in exported)
    rows = "".join(write_row(f, f.name in by_name, f.name in exported_names, f.name in dispatch) for f in functions)
    return f"""{GENERATED}#include "opencl/wrappers.h"

#include "shim/opencl/commands.h"
#include "shim/opencl/lookup.h"
#include "shim/opencl/queues.h"

namespace xsched::opencl {{

static_assert(kMaxRoutes == {ROUTES});

// ---- the wrappers ----

{wrappers}
// ---- the ways in: through a layer's table or a function pointer, one set per route … ----

template <int kRoute>
struct Via {{
{ways_in}}};

}}  // namespace xsched::opencl

// ---- … and as exported functions, where the caller decides ----

using namespace xsched::opencl;

#define XSCHED_EXPORT __attribute__((visibility("default")))

extern "C" {{

{exports}
}}  // extern "C"

namespace xsched::opencl {{

const Wrapper kWrappers[kFunctionCount] = {{
{rows}}};

}}  // namespace xsched::opencl
"""


def write_wrappers_h():
    return f"""{GENERATED}#pragma once

#include "opencl/functions.h"
#include "shim/opencl/routes.h"

namespace xsched::opencl {{

inline constexpr size_t kNotInDispatch = ~size_t{{0}};

struct Wrapper {{
  size_t dispatch_offset;  // of the function in cl_icd_dispatch
  void* exported;          // null: not exported
  void* via[kMaxRoutes];   // null: not wrapped
}};

// In the order of kFunctionNames.
extern const Wrapper kWrappers[kFunctionCount];

}}  // namespace xsched::opencl
"""


def write_map():
    return """/* Written by codegen/opencl.py.
 *
 * The wrappers have no version: they then stand for any that a program's own OpenCL library has (OPENCL_1.0 and so on).
 * All else is compiled hidden, but for what the C++ language makes visible. dlsym has the version under which programs look
 * for it; the older one is in dl_hooks.map.
 */
GLIBC_2.34 { global: dlsym; dlclose; local: _Z*; __cxa_*; xsched_*; XSched*; };
"""


def files(registry, coverage, dispatch):
    wrapped = coverage.wrapped
    own = [coverage.functions[name] for name in registry.own_calls if name in coverage.functions]
    functions = sorted([e.function for e, _ in wrapped] + own, key=lambda f: f.name)
    exported = [e.function for e, _ in wrapped if e.name in dispatch and e.function.header in PORTABLE_HEADERS]
    return {
        "functions.h": write_functions_h(functions),
        "functions.cc": write_functions_cc(functions),
        "wrappers.h": write_wrappers_h(),
        "wrappers.cc": write_wrappers_cc(registry, functions, wrapped, exported, dispatch),
        "shimopencl.map": write_map(),
        "coverage.txt": "\n".join(coverage.report()) + "\n",
    }


def generate(options):
    registry = Registry(options.registry)
    coverage = OpenCLCoverage(registry, read_headers(options.headers), read_known_types(options.headers))
    check_launches(registry, coverage.wrapped)
    return coverage, lambda: files(registry, coverage, read_dispatch_members(options.headers))


if __name__ == "__main__":
    run("Generates the OpenCL shim.", "the folder CL of the installed headers", generate)
