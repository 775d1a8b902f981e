"""By which objects a call finds the runtime instance that made them ([handles] in registry/hip)."""

from collections import defaultdict


class Handles:
    def __init__(self, registry):
        self._types, self._code, self._not_new = (registry.handles[key] for key in ("types", "code", "not_new"))

    def used(self, export, entry):
        """Expressions, of which the first that an instance is known for decides."""
        found = defaultdict(list)
        for p in export.function.parameters:
            if p.type in self._types:
                found[p.type].append(f"Handle({p.name})")
            elif p.type == "const void*" and p.name in self._code:
                found["code"].append(f"Code({p.name})")
        if "code" in entry.details:
            found["code"] = [f"Code({entry.details['code']})"]
        if "handle" in entry.details:
            found[self._types[0]] = [f"Handle({entry.details['handle']})"]
        return [expression for type_name in self._types for expression in found[type_name]]

    def made(self, export, entry):
        """Calls that keep in mind what the instance has made."""
        return [f"Made({p.name})" for p in export.function.parameters
                if p.type.endswith("*") and p.type[:-1] in self._types and p.name not in self._not_new] + (
                    [entry.details["makes"]] if "makes" in entry.details else [])
