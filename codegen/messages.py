#!/usr/bin/env python3
"""Writes what is made of the description of the messages, registry/ipc/messages.toml.

    messages.py --out DIR            writes messages.h and messages.dict
    messages.py --write-document     writes docs/protocol.md
    messages.py --check-document     exit status 1 if docs/protocol.md is not what would be written
"""

import argparse
import difflib
import pathlib
import sys

import message_dictionary
import message_document
import message_header
from message_description import DESCRIPTION, Description, DescriptionError

DOCUMENT = DESCRIPTION.parent.parent.parent / "docs/protocol.md"


def differences(description, document):
    text = document.read_text() if document.exists() else ""
    return list(difflib.unified_diff(text.splitlines(), message_document.write(description).splitlines(), str(document), "generated",
                                     lineterm=""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--description", type=pathlib.Path, default=DESCRIPTION)
    parser.add_argument("--document", type=pathlib.Path, default=DOCUMENT)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--write-document", action="store_true")
    parser.add_argument("--check-document", action="store_true")
    options = parser.parse_args()
    try:
        description = Description(options.description)
    except DescriptionError as error:
        sys.exit(f"{options.description}: {error}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "messages.h").write_text(message_header.write(description))
        (options.out / "messages.dict").write_text(message_dictionary.write(description))
    if options.write_document:
        options.document.write_text(message_document.write(description))
    changed = differences(description, options.document) if options.check_document else []
    if changed:
        sys.exit("\n".join(changed) + "\n\nrun codegen/messages.py --write-document")


if __name__ == "__main__":
    main()
