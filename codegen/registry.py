"""A platform's registry (registry/<platform>/functions.toml): which function means what."""

import tomllib
from dataclasses import dataclass


class RegistryError(Exception):
    """The registry and the headers contradict each other; the text says where."""


@dataclass(frozen=True)
class Entry:
    name: str
    kind: str
    wrapped: bool
    is_launch: bool
    details: dict  # what the function says about itself


class Registry:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = tomllib.load(file)
        self.kinds = data["kinds"]
        self.roles = data.get("roles", {})
        self.types = data.get("types", {})
        self.handles = data.get("handles", {})
        self.own_calls = data.get("own", {}).get("calls", [])
        self.entries = {}
        for kind, properties in self.kinds.items():
            for name, details in data.get(kind, {}).items():
                if name in self.entries:
                    raise RegistryError(f"{path}: {name} is both {self.entries[name].kind} and {kind}")
                self.entries[name] = Entry(name, kind, properties.get("wrapped", "scope" in properties),
                                           properties.get("launch", False), details)
        unknown = set(data) - set(self.kinds) - {"kinds", "roles", "handles", "types", "own"}
        if unknown:
            raise RegistryError(f"{path}: no such kind: {', '.join(sorted(unknown))}")
