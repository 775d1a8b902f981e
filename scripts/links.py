#!/usr/bin/env python3
"""Checks the links of the documents: each relative link, and each path in backquotes that begins with a folder of the project, must
exist.

  links.py [FOLDER]      of the project; by default the one that this script belongs to
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:src|tests|docs|scripts|include|bench|registry|codegen|packaging|model|plan|python|examples)/[\w./-]+)`")


def anchors(text):
    """The anchors that hosting sites make from headings."""
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        yield words.replace(" ", "-")


def broken(root, document):
    text = (root / document).read_text()
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (root / document).parent / name if name else root / document
        if not file.exists():
            yield target
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield target
    for path in PATH.findall(text):
        if not (root / path).exists():
            yield path


def main(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "*.md"], capture_output=True, text=True, check=False).stdout.split()
    documents = listed or [path.relative_to(root) for path in root.rglob("*.md") if "build" not in path.parts]
    # tests/docs/broken shows that this check can fail.
    documents = [document for document in map(pathlib.Path, documents)
                 if (root / document).exists() and "broken" not in document.parts]
    found = [f"{document}: {target} is not there" for document in documents for target in broken(root, document)]
    print("\n".join(found) or f"{len(documents)} documents point to what is there")
    return 1 if found or not documents else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent))
