#!/usr/bin/env python3
"""Writes the wrappers and tables of a platform's shim from registry/<platform> and, for some platforms, installed headers.

    wrappers.py PLATFORM --out DIR     writes the files that shim.py lists
    wrappers.py PLATFORM --check       exit status 1 if a function is not classified, or if the platform finds another fault

registry/README.md explains the registry. What differs between platforms is in platforms/<platform>/shim.py.
"""

import argparse
import importlib
import pathlib
import sys

from registry import Registry, RegistryError
from shim import Shim

HERE = pathlib.Path(__file__).resolve().parent


def shim_of(platform):
    """The class that platforms/<platform>/shim.py defines."""
    module = importlib.import_module(f"platforms.{platform}.shim")
    found = [value for value in vars(module).values()
             if isinstance(value, type) and issubclass(value, Shim) and value.platform == platform]
    return found[0]


def parse_arguments():
    parser = argparse.ArgumentParser(description="Generates a platform's shim.")
    platforms = parser.add_subparsers(dest="platform", required=True)
    for path in sorted(HERE.glob("platforms/*/shim.py")):
        shim = shim_of(path.parent.name)
        of_platform = platforms.add_parser(shim.platform, help=shim.title)
        of_platform.add_argument("--registry", type=pathlib.Path, default=HERE.parent / "registry" / shim.platform)
        for option, properties in shim.command_line.items():
            of_platform.add_argument(option, **properties)
        of_platform.add_argument("--out", type=pathlib.Path)
        of_platform.add_argument("--check", action="store_true")
    return parser.parse_args()


def write(files, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def main():
    options = parse_arguments()
    try:
        shim = shim_of(options.platform)(Registry(options.registry), options)
        if options.out:
            write(shim.files(), options.out)
        faults = list(shim.faults()) if options.check else []
    except RegistryError as error:
        sys.exit(f"codegen: {error}")
    print("\n".join(shim.coverage.report() + faults))
    return 1 if options.check and (faults or not shim.coverage.is_complete()) else 0


if __name__ == "__main__":
    sys.exit(main())
