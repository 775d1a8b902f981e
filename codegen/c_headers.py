"""Reads function declarations from C headers, without preprocessor or compiler. It knows only the forms of vendors' headers.

Three forms are known, `NAME` being what the caller's pattern accepts:
    extern ENTRY ret CALL NAME(params) SUFFIX;            a prototype
    typedef ret (CALL *NAME_fn)(params);                  a pointer type, for functions that are only looked up
    typedef ret CALL NAME_t(params);                      a function type
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str  # with one space between words, stars close to the word before; "callback" for a pointer to a function
    declaration: str


@dataclass(frozen=True)
class Function:
    name: str
    result: str
    parameters: tuple
    header: str

    def parameter(self, name):
        return next((p for p in self.parameters if p.name == name), None)


def _without_comments_and_directives(text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    return re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.M)


def _balanced(text, opening):
    """The index just behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced parentheses")


def _split_at_commas(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return parts + [text[start:]]


class HeaderReader:
    """`noise` are macro names that mean nothing for a function's type (ENTRY, CALL, deprecation …)."""

    def __init__(self, name_pattern, noise_pattern):
        self._declaration = re.compile(
            rf"(?P<result>[\w\s\*]+?)\s*(?:\(\s*(?:\w+\s*)?\*\s*(?P<pointer>{name_pattern})_fn\s*\)|\b(?P<plain>{name_pattern}?)(?P<t>_t)?)\s*\(")
        self._noise = re.compile(rf"\b(?:{noise_pattern})\b(?:\s*\([^()]*\))?")

    def read(self, text, header):
        """All functions that `text` declares, by name."""
        text = self._noise.sub(" ", _without_comments_and_directives(text))
        text = re.sub(r'extern\s+"C"\s*\{', " ", text)
        functions = {}
        for statement in self._statements(text):
            function = self._function(statement, header)
            if function is not None:
                functions.setdefault(function.name, function)
        return functions

    @staticmethod
    def _statements(text):
        """Splits at semicolons outside of braces; struct bodies stay in one piece."""
        depth, start = 0, 0
        for i, c in enumerate(text):
            depth += {"{": 1, "}": -1}.get(c, 0)
            if c == ";" and depth <= 0:
                yield " ".join(text[start:i].split())
                start, depth = i + 1, 0

    def _function(self, statement, header):
        if "{" in statement or "=" in statement:
            return None
        is_typedef = statement.startswith("typedef ")
        match = self._declaration.match(re.sub(r"^(typedef|extern)\s+", "", statement))
        if match is None:
            return None
        if is_typedef != bool(match["pointer"] or match["t"]):
            return None
        body = re.sub(r"^(typedef|extern)\s+", "", statement)
        opening = match.end() - 1
        parameters = body[opening + 1:_balanced(body, opening) - 1]
        return Function(match["pointer"] or match["plain"], match["result"].strip(), self.parameters(parameters), header)

    @staticmethod
    def parameters(text):
        if text.strip() in ("", "void"):
            return ()
        return tuple(HeaderReader._parameter(" ".join(part.split()), i) for i, part in enumerate(_split_at_commas(text)))

    @staticmethod
    def _parameter(text, index):
        callback = re.match(r"[^()]*\(\s*\*\s*(\w+)\s*\)\s*\(", text)
        if callback:
            return Parameter(callback[1], "callback", text)
        plain = re.match(r"(?P<type>.*?[\s\*])(?P<name>\w+)\s*(?P<dimension>(\[[^\]]*\])?)$", text)
        if plain is None or plain["name"] in ("char", "int", "long", "short", "void"):
            return Parameter(f"argument{index}", re.sub(r"\s+\*", "*", text), f"{text} argument{index}")
        return Parameter(plain["name"], re.sub(r"\s+\*", "*", plain["type"].strip()) + plain["dimension"], text)
