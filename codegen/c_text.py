"""Pieces of C++ that are written for every platform."""


def generated_by(platform):
    return f"// Written by codegen/wrappers.py from registry/{platform}: edit that.\n"


def signature(function):
    return ", ".join(p.declaration for p in function.parameters) or "void"


def arguments(function):
    return ", ".join(p.name for p in function.parameters)


def pointer_type(function, call_convention=""):
    return f"{function.result} ({call_convention.strip()}*)({signature(function)})"


def address(function):
    # No helper function, so that the table needs no code to run when the library is loaded.
    return f"reinterpret_cast<void*>(&{function})"


def rows(lines):
    return "\n".join("    " + line for line in lines)


def name_table(platform, names):
    return f"""namespace xsched::{platform} {{

const char* const kFunctionNames[kFunctionCount] = {{
{rows(f'"{name}",' for name in names)}
}};

}}  // namespace xsched::{platform}
"""


def function_table(shim, members):
    """The table of functions; `members`: their types and names."""
    struct = shim.functions_struct
    # Calls of a DriverFunction are checked in debug builds.
    declared = "\n".join(f"  DriverFunction<{type_name}> {name};" for type_name, name in members)
    return f"""{generated_by(shim.platform)}// The functions of {shim.holder} that XSched wraps or calls; null: there is none such.
#pragma once

#include "{shim.abi_header}"
#include "base/driver_function.h"

namespace xsched::{shim.platform} {{

{shim.types()}struct {struct} {{
{declared}
}};

inline constexpr int kFunctionCount = {len(members)};
static_assert(sizeof({struct}) == kFunctionCount * sizeof(void*));

// The symbols that they are exported as, in the order of the members, which is alphabetical.
extern const char* const kFunctionNames[kFunctionCount];

}}  // namespace xsched::{shim.platform}
"""


def version_script(why, hidden):
    """A shim's version script. `why` the wrappers have no version; `hidden`: what the C++ language makes visible."""
    return f"""/* Written by codegen/wrappers.py.
 *
{chr(10).join(" * " + line for line in why)}
 */
GLIBC_2.34 {{ global: dlsym; dlclose; local: {hidden} __cxa_*; xsched_*; XSched*; }};
"""
