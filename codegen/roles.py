"""The roles of a function's parameters: what a wrapper passes to its scope."""

from registry import RegistryError


class Roles:
    def __init__(self, registry):
        self._roles = registry.roles

    def of(self, role, export, entry):
        """The expression that is `role` in this function."""
        expression = self._expression(role, export, entry)
        if role == "stream" or self._roles[role].get("is_stream"):
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
