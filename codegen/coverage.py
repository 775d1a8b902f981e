"""Classifies each function of a platform: wrapped, untouched, or unknown."""

import re


def _types_of(export):
    function = export.function
    text = function.result + " " + " ".join(p.type for p in function.parameters if p.type != "callback")
    return re.findall(r"[A-Za-z_]\w*", text)


class Coverage:
    """`functions`: name -> [Export], by the names under which the registry may list them. `source`: where they were found."""

    def __init__(self, title, registry, functions, source, is_known_type):
        self._title, self._registry, self._source = title, registry, source
        self.functions = functions
        self.wrapped = []  # (name, Entry)
        self.untouched = []
        self.unclassified = []
        self.untyped = []  # to be wrapped, but with types that are not known
        self.absent = sorted(set(registry.entries) - set(functions))
        for name in sorted(functions):
            entry = registry.entries.get(name)
            if entry is None:
                self.unclassified.append(name)
            elif not entry.wrapped:
                self.untouched.append(name)
            elif not all(is_known_type(type_name) for export in functions[name] for type_name in _types_of(export)):
                self.untyped.append(name)
            else:
                self.wrapped.append((name, entry))

    def is_complete(self):
        return not self.unclassified and not self.untyped

    def report(self):
        launches = sum(entry.is_launch for _, entry in self.wrapped)
        lines = [f"{self._title}: {len(self.functions)} functions in {self._source}: {launches} launch commands, "
                 f"{len(self.wrapped) - launches} more are wrapped, {len(self.untouched)} pass through, "
                 f"{len(self.unclassified)} unclassified"]
        if self.unclassified:
            lines.append("  unclassified (they pass through): " + ", ".join(self.unclassified))
        if self.absent:
            lines.append(f"  known, but not in {self._source}: " + ", ".join(self.absent))
        if self.untyped:
            lines.append("  not wrapped, because their types are missing: " + ", ".join(self.untyped))
        return lines
