#!/usr/bin/env python3
"""Checks that words have one spelling: American, as in the names of the API (XHintUtilization, HwQueueSynchronize).

  spelling.py [FOLDER]      of the project; by default the one that this script belongs to
"""
import pathlib
import re
import subprocess
import sys

# Written with -ize here: initialize, initialized, initialization, …
WITH_Z = ("capital", "custom", "final", "general", "initial", "maxim", "minim", "normal", "optim", "organ", "parallel", "priorit",
          "real", "recogn", "serial", "special", "summar", "synchron", "util", "virtual")
# ->IsCancelled is gRPC's.
OTHERS = {
    r"behaviour": "behavior", r"colour": "color", r"favour": "favor", r"honour": "honor", r"neighbour": "neighbor",
    r"modell(?=ed|ing)": "model", r"labell(?=ed|ing)": "label", r"signall(?=ed|ing)": "signal", r"travell(?=ed|ing)": "travel",
    r"(?<!->Is)cancell(?=ed|ing)": "cancel", r"analyse": "analyze", r"centre": "center", r"defence": "defense", r"grey(?!list)": "gray",
    r"judgement": "judgment", r"learnt": "learned", r"licence": "license", r"misspelt": "misspelled", r"(?<!mis)spelt": "spelled",
}
SPELLINGS = [(re.compile(rf"{stem}is(?=e\b|es\b|ed\b|er\b|ers\b|ing\b|ation|e_|es_|ed_|ing_)", re.I), f"{stem}iz") for stem in WITH_Z]
SPELLINGS += [(re.compile(pattern, re.I), here) for pattern, here in OTHERS.items()]
ANY = re.compile("|".join(pattern.pattern for pattern, _ in SPELLINGS), re.I)
# This list, what shows that the check can fail, and what others have written.
LEFT_OUT = re.compile(r"scripts/spelling\.py|tests/docs/misspelled/.*|LICENSE|registry/.*\.txt|.*\.json")


def files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=False).stdout.splitlines()
    listed = listed or [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return [name for name in listed if not LEFT_OUT.fullmatch(name) and (root / name).is_file()]


def faults(root):
    for name in files(root):
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not a text
        for number, line in enumerate(text.splitlines() if ANY.search(text) else (), 1):
            for pattern, here in SPELLINGS:
                for found in pattern.finditer(line):
                    yield f"{name}:{number}: {found[0]}… is spelled {here}… here: {line.strip()[:100]}"


def main(root):
    found = list(faults(root))
    print("\n".join(found) or "words have one spelling")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent))
