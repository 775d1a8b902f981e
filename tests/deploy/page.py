#!/usr/bin/env python3
"""Configurations and commands of a page of docs/deploy, as the page has them.

  page.py NAME WORD [OTHER]     prints the one block of docs/deploy/NAME.md in which this word is, and not the other one
"""
import pathlib
import re
import sys
import textwrap

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs/deploy"


def block_with(name, word, other=None):
    """Blocks are indented by four spaces, and end with an empty line."""
    blocks = re.findall(r"(?<=\n\n)(?: {4}.*\n)+", (PAGES / f"{name}.md").read_text(encoding="utf-8"))
    [found] = [block for block in blocks if word in block and not (other and other in block)]
    return textwrap.dedent(found)


if __name__ == "__main__":
    print(block_with(*sys.argv[1:]), end="")
