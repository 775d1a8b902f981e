"""Pieces of C++ that every platform's generator writes, and how it is run."""

import argparse
import pathlib
import sys

from registry import RegistryError


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


def run(title, headers_help, generate, add_options=None):
    """The generator's command line. `generate(options)` returns the Coverage and a function that makes the files' texts."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--registry", type=pathlib.Path, required=True)
    parser.add_argument("--headers", type=pathlib.Path, required=True, help=headers_help)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    if add_options:
        add_options(parser)
    options = parser.parse_args()
    try:
        coverage, files = generate(options)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            for name, text in files().items():
                (options.out / name).write_text(text)
    except RegistryError as error:
        sys.exit(f"codegen: {error}")
    print("\n".join(coverage.report()))
    if options.check and not coverage.is_complete():
        sys.exit(1)
