"""Which of a function's parameters is what, for the platforms whose wrappers hand roles to a scope."""

from registry import RegistryError


class Roles:
    """What a wrapper hands to its scope."""

    def __init__(self, registry):
        self._roles = registry.roles

    def of(self, role, export, entry):
        """The expression that is `role` in this function."""
        expression = self._expression(role, export, entry)
        if role == "stream":
            return f"ActualStream<{'true' if export.per_thread else 'false'}>({expression})"
        return expression

    def _expression(self, role, export, entry):
        if role in entry.details:
            return entry.details[role]
        rules = self._roles[role]
        for parameter in export.function.parameters:
            if parameter.name in rules.get("names", []) and rules.get("type", parameter.type) == parameter.type:
                return parameter.name
        if "else" not in rules:
            raise RegistryError(f"{export.name} is a {entry.kind}, but which parameter is its {role}?")
        return rules["else"]


def check_streams(registry, exports, stream_type):
    """A function that takes a stream, in a kind that knows of none, would be scheduled wrongly, silently."""
    for name, entry in registry.entries.items():
        kind = registry.kinds[entry.kind]
        knows = kind.get("takes_streams", False) or "stream" in kind.get("takes", []) + kind.get("gives", [])
        for export in exports.get(name, []):
            if not knows and any(p.type == stream_type for p in export.function.parameters):
                raise RegistryError(f"{export.name} takes a stream: it can be no {entry.kind}")
