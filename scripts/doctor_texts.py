#!/usr/bin/env python3
"""Checks that the documents quote `xsched doctor` as it speaks: words that follow one another in a quotation do so in a text of the sources,
or in one of the system's errors. Quotations are in the section "What the doctor says", and in rows of tables that begin with "doctor:".

  doctor_texts.py [FOLDER]      with docs/platforms/*.md; by default this project's. The sources are this project's.
"""
import errno
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SECTION = re.compile(r"^## What the doctor says$(.*?)(?=^## |\Z)", re.M | re.S)
SHOWN_LINE = re.compile(r"^    \[\w+\] +\S+ +(.*)$", re.M)
FIRST_CELL = re.compile(r"^\| `([^`]*)`", re.M)
ROW_OF_DOCTOR = re.compile(r"^\| doctor(?:: |：)`([^`]*)`", re.M)  # in Chinese with a colon of full width
DEVICE = re.compile(r"^[0-9a-f]{4}:[0-9a-f]{2}:[^:]*: ")
WORDS = re.compile(r"[A-Za-z'-]+(?: [A-Za-z'-]+)+")
# What a text takes from elsewhere: files, numbers, names of variables and of errors. What stands beside it is in the sources.
VARIABLE = re.compile(r"…?\S*[\d/_…]\S*")


def texts():
    """The string literals of the sources. Those that the compiler joins are one."""
    for file in ROOT.glob("src/**/*"):
        if file.suffix in (".cc", ".h", ".inc"):
            yield from LITERAL.findall(re.sub(r'"\s*\n\s*"', "", file.read_text(encoding="utf-8")))
    yield from map(os.strerror, errno.errorcode)


def quotations(document):
    section = "".join(SECTION.findall(document))
    return [*SHOWN_LINE.findall(section), *FIRST_CELL.findall(section), *ROW_OF_DOCTOR.findall(document)]


def is_known(words, known):
    """Also if the last of them stand for a place in the text."""
    ends = [space.start() for space in re.finditer(" ", words)]
    return words in known or any(f"{words[:end]} {{}}" in known and words[end + 1:] in known for end in ends)


def main(root):
    known = "\n".join(texts())
    quoted = [(document.name, text) for document in sorted(root.glob("docs/platforms/*.md"))
              for text in quotations(document.read_text(encoding="utf-8"))]
    found = [f"{name}: no text of the sources has “{words}”: {text}" for name, text in quoted
             for words in WORDS.findall(VARIABLE.sub("|", DEVICE.sub("", text))) if not is_known(words, known)]
    print("\n".join(found) or f"{len(quoted)} quotations of the doctor are right")
    return 1 if found or not quoted else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
