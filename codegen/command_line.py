"""How a platform's generator is run."""

import argparse
import pathlib
import sys

from registry import RegistryError


def run(title, headers_help, generate, add_options=None, headers_required=True):
    """`generate(options)` returns the Coverage, a function that makes the files' texts, by their names, and one that finds
    faults beside what the coverage says: sentences, which fail a check."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--registry", type=pathlib.Path, required=True)
    parser.add_argument("--headers", type=pathlib.Path, required=headers_required, help=headers_help)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    if add_options:
        add_options(parser)
    options = parser.parse_args()
    try:
        coverage, files, find_faults = generate(options)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            for name, text in files().items():
                (options.out / name).write_text(text)
        faults = list(find_faults()) if options.check else []
    except RegistryError as error:
        sys.exit(f"codegen: {error}")
    print("\n".join(coverage.report() + faults))
    if options.check and (faults or not coverage.is_complete()):
        sys.exit(1)


def no_faults():
    return []
