"""What becomes of each function of a platform's headers."""


class Coverage:
    """`functions`: those of the headers, by the names under which the registry may list them."""

    def __init__(self, platform, registry, functions, source="the headers"):
        self._platform, self._registry, self._source = platform, registry, source
        self.functions = functions
        self.wrapped = []  # (name, Entry)
        self.untouched = []
        self.unclassified = []
        self.absent = sorted(set(registry.entries) - set(functions))
        for name in sorted(functions):
            entry = registry.entries.get(name)
            if entry is None:
                self.unclassified.append(name)
            elif not entry.wrapped:
                self.untouched.append(name)
            else:
                self.wrapped.append((name, entry))

    def is_complete(self):
        return not self.unclassified

    def report(self):
        launches = sum(entry.is_launch for _, entry in self.wrapped)
        lines = [f"{self._platform}: {len(self.functions)} functions in {self._source}: {launches} launch commands, "
                 f"{len(self.wrapped) - launches} more are wrapped, {len(self.untouched)} pass through, "
                 f"{len(self.unclassified)} unclassified"]
        if self.unclassified:
            lines.append("  unclassified (they pass through): " + ", ".join(self.unclassified))
        if self.absent:
            lines.append(f"  known, but not in {self._source}: " + ", ".join(self.absent))
        return lines
