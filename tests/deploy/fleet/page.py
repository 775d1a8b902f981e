#!/usr/bin/env python3
"""What docs/deploy/fleet.md says is to be written to files, as the page has it.

  page.py WORD [OTHER]     prints the one block of the page in which this word is, and not the other one
"""
import pathlib
import re
import sys
import textwrap

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/deploy/fleet.md"


def block_with(word, other=None):
    """Blocks are indented by four spaces, and end with an empty line."""
    blocks = re.findall(r"(?<=\n\n)(?: {4}.*\n)+", PAGE.read_text(encoding="utf-8"))
    [found] = [block for block in blocks if word in block and not (other and other in block)]
    return textwrap.dedent(found)


if __name__ == "__main__":
    print(block_with(*sys.argv[1:]), end="")
