#!/usr/bin/env python3
"""Checks that each translation (PAGE.zh-CN.md) says what its original (PAGE.md) says, as far as a program can see it: section by section,
the same headings' levels, table rows, commands, words in backquotes, links and figures.

  translations.py [FOLDER]      of the project; by default the one that this script belongs to
"""
import collections
import pathlib
import re
import sys

SUFFIX = ".zh-CN.md"
HEADING = re.compile(r"^(#+) (.*)")
# A line of an indented block that begins at its edge: the words before a comment, which two spaces or a # begin.
COMMAND = re.compile(r"^    (?=\S)(.*?)(?:\s{2,}\S.*|\s*#.*)?$")
BACKQUOTED = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[([^]]*)\]\(([^)#]+)(?:#[^)]*)?\)")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
WITHOUT_SPACES = re.compile(r"\s+")


class Section:
    """What of a section must be the same in both languages."""

    def __init__(self, level, title):
        self.title = title
        self.same = {"heading's level": level, "table rows": 0, "commands": collections.Counter(), "words in backquotes": collections.Counter(),
                     "links": collections.Counter(), "figures": collections.Counter()}
        self._text = []

    def add(self, line):
        if line.startswith("    "):
            if found := COMMAND.match(line):
                self.same["commands"][found[1]] += 1
            return
        self.same["table rows"] += line.startswith("|")
        self._text.append(line)

    def end(self, own_names):
        # Both may go on in the next line.
        text = " ".join(self._text)
        self.same["words in backquotes"].update(WITHOUT_SPACES.sub("", words) for words in BACKQUOTED.findall(text))
        text = BACKQUOTED.sub("", text)
        targets = (target.replace(SUFFIX, ".md") for _, target in LINK.findall(text))
        self.same["links"].update(target for target in targets if target not in own_names)
        self.same["figures"].update(NUMBER.findall(LINK.sub("", text)))
        return self


def sections(text, name):
    found = [Section(0, "the beginning")]
    for line in text.splitlines():
        if heading := HEADING.match(line):
            found.append(Section(len(heading[1]), heading[2]))
            line = heading[2]
        found[-1].add(line)
    return [section.end({name}) for section in found]


def differences(original, translation, name):
    """In a few words each, what one has and the other has not."""
    theirs, ours = sections(original, name), sections(translation, name)
    if len(theirs) != len(ours):
        yield f"{len(ours)} sections, and {len(theirs)} in the original"
    for one, other in zip(theirs, ours):
        for what, expected in one.same.items():
            actual = other.same[what]
            if expected == actual:
                continue
            if isinstance(expected, int):
                yield f'"{other.title}": {what}: {actual}, and {expected} in the original'
            else:
                parts = [("missing", expected - actual), ("not in the original", actual - expected)]
                yield f'"{other.title}": {what}: ' + "; ".join(
                    f"{word}: {', '.join(sorted(counter.elements()))}" for word, counter in parts if counter)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    # tests/docs/broken shows that this check can fail.
    translations = sorted(path for path in folder.rglob(f"*{SUFFIX}") if not {"build", "broken"} & set(path.relative_to(folder).parts))
    if not translations:
        sys.exit(f"{folder} has no translations")
    problems = []
    for path in translations:
        original = path.with_name(path.name.replace(SUFFIX, ".md"))
        if not original.exists():
            problems.append(f"{path.relative_to(folder)}: {original.name} is not there")
            continue
        texts = [file.read_text(encoding="utf-8") for file in (original, path)]
        problems += [f"{path.relative_to(folder)}: {problem}" for problem in differences(*texts, original.name)]
    print("\n".join(problems) if problems else f"{len(translations)} translations are in step with their originals")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
