"""Pieces of C++ that every platform's generator writes."""


def generated_by(platform):
    return (f"// Written by codegen/{platform}.py from registry/{platform}/functions.toml and the installed headers: "
            "edit those.\n")


def signature(function):
    return ", ".join(p.declaration for p in function.parameters) or "void"


def arguments(function):
    return ", ".join(p.name for p in function.parameters)


def with_first(first, rest):
    return f"{first}, {rest}" if rest else first


def address(function):
    # No helper function, so that the table needs no code to run when the library is loaded.
    return f"reinterpret_cast<void*>(&{function})"


def write_names(platform, functions):
    names = "\n".join(f'    "{f.name}",' for f in functions)
    return f"""namespace xsched::{platform} {{

const char* const kFunctionNames[kFunctionCount] = {{
{names}
}};

}}  // namespace xsched::{platform}
"""


def write_functions_h(generated, platform, what, includes, members, *, struct="Functions", names, before=""):
    """The table of functions: `what` it holds, its `members`, and what order the `names` beside it have."""
    return f"""{generated}// {what}
#pragma once

{includes}

namespace xsched::{platform} {{

{before}struct {struct} {{
{chr(10).join("  " + member for member in members)}
}};

inline constexpr int kFunctionCount = {len(members)};
static_assert(sizeof({struct}) == kFunctionCount * sizeof(void*));

// {names}
extern const char* const kFunctionNames[kFunctionCount];

}}  // namespace xsched::{platform}
"""


def write_map(platform, why, hidden="_Z*;"):
    """A shim's version script. `why` the wrappers have no version; `hidden`: what the C++ language makes visible."""
    return f"""/* Written by codegen/{platform}.py.
 *
{chr(10).join(" * " + line for line in why)}
 */
GLIBC_2.34 {{ global: dlsym; dlclose; local: {hidden} __cxa_*; xsched_*; XSched*; }};
"""
