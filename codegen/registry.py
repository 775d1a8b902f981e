"""A platform's registry: which function means what. registry/README.md explains how it is written."""

import tomllib
from dataclasses import dataclass

# What a kind, and the scope of other calls in it, may say.
OF_KINDS = {"about", "scope", "takes", "gives", "any_call", "otherwise", "launch", "wrapped", "takes_streams"}
OF_OTHERWISE = {"scope", "takes", "gives"}
# What a change to the account of memory may say.
OF_ACCOUNTING = {"about", "scope", "takes", "gives", "refuses"}
# What a function may say, beside which expression has a role.
OF_FUNCTIONS = {"c", "returns", "handle", "code", "makes", "ends", "accounting"}
SECTIONS = {"kinds", "accounting", "roles", "handles", "types", "own"}


class RegistryError(Exception):
    """The registry is wrong, or contradicts what the platform has; the text says where."""


@dataclass(frozen=True)
class Entry:
    name: str
    kind: str
    wrapped: bool
    is_launch: bool
    details: dict  # what the function says about itself

    @property
    def accounting(self):
        """What the function does to the account of memory; None: nothing."""
        return self.details.get("accounting")


class Registry:
    def __init__(self, folder):
        self.folder = folder
        self._path = folder / "functions.toml"
        with open(self._path, "rb") as file:
            data = tomllib.load(file)
        self.kinds = data["kinds"]
        self.accounting = data.get("accounting", {})
        self.roles = data.get("roles", {})
        self.types = data.get("types", {})
        self.handles = data.get("handles", {})
        self.own_calls = data.get("own", {}).get("calls", [])
        self.entries = {}
        self._check_words("kinds", set(data) - SECTIONS, set(self.kinds))
        for change, properties in self.accounting.items():
            self._check_words(f"accounting.{change}", set(properties), OF_ACCOUNTING)
            self._check_roles(f"accounting.{change}", properties)
        for kind, properties in self.kinds.items():
            self._check_kind(kind, properties)
            for name, details in data.get(kind, {}).items():
                self._add(name, kind, properties, details)

    def _check_kind(self, kind, properties):
        self._check_words(f"kinds.{kind}", set(properties), OF_KINDS)
        other = properties.get("otherwise", {})
        self._check_words(f"kinds.{kind}.otherwise", set(other), OF_OTHERWISE)
        for scope in (properties, other):
            self._check_roles(f"kinds.{kind}", scope)

    def _check_roles(self, where, scope):
        self._check_words(f"{where}: roles", {*scope.get("takes", []), *scope.get("gives", [])}, set(self.roles))

    def _add(self, name, kind, properties, details):
        if name in self.entries:
            raise RegistryError(f"{self._path}: {name} is both {self.entries[name].kind} and {kind}")
        self._check_words(name, set(details), OF_FUNCTIONS | set(self.roles))
        if "accounting" in details:
            self._check_words(f"{name}: accounting", {details["accounting"]}, set(self.accounting))
        wrapped = properties.get("wrapped", "scope" in properties) or "accounting" in details
        self.entries[name] = Entry(name, kind, wrapped, properties.get("launch", False), details)

    def _check_words(self, where, used, known):
        if used - known:
            raise RegistryError(f"{self._path}: {where}: not known: {', '.join(sorted(used - known))}")
