"""The lines of a wrapper that make the call within its kind's scope (registry/<platform>/functions.toml)."""

from roles import Roles

ASKS = "call.is_the_programs()"


class Scopes:
    """`success`: what a call's result is compared with; `outcome`: what a scope gets of the result; `out_of_memory`: what a call
    returns that is refused."""

    def __init__(self, registry, success, outcome="result", out_of_memory=""):
        self._kinds, self._accounting, self._roles = registry.kinds, registry.accounting, Roles(registry)
        self._success, self._outcome, self._out_of_memory = success, outcome, out_of_memory

    def write(self, export, entry, call, before=(), after=()):
        """Lines that return the result of `call`, and keep the account of memory."""
        lines = self._write_in_kind(export, entry, call, before, after)
        if entry.accounting is None:
            return lines
        change, result = self._accounting[entry.accounting], export.function.result
        takes, gives = self._arguments(change, export, entry)
        refusal = [f"if (account.refused()) [[unlikely]] return {self._out_of_memory};"] if change.get("refuses") else []
        return [f"{change['scope']} account(call{takes});", *refusal,
                f"const {result} answer = [&]() -> {result} {{", *("  " + line for line in lines), "}();",
                f"account.Finish(answer{gives});", "return answer;"]

    def _arguments(self, scope, export, entry):
        return ["".join(", " + self._roles.of(role, export, entry) for role in scope.get(which, [])) for which in ("takes", "gives")]

    def _write_in_kind(self, export, entry, call, before, after):
        """Lines that return the result of `call`. `before` and `after` (only on success) are added around the program's own calls.

        The wrapper checks once whether a call is the program's own. No scope checks that. A call that is not the program's own has no
        scope, unless its kind says so: `any_call` uses the same scope for all calls, `otherwise` another scope for these."""
        kind = self._kinds[entry.kind]
        if "scope" not in kind and not before and not after:
            return [f"return {call};"]
        lines = [] if kind.get("any_call") else self._pass(kind, export, entry, call)
        return lines + [*before, *self._within(kind, export, entry, call, after)]

    def _pass(self, kind, export, entry, call):
        if "otherwise" not in kind:
            return [f"if (!{ASKS}) return {call};"]
        within = self._within(kind["otherwise"], export, entry, call)
        return [f"if (!{ASKS}) {{", *("  " + line for line in within), "}"]

    def _within(self, kind, export, entry, call, after=()):
        has_result = export.function.result != "void"
        takes, gives = self._arguments(kind, export, entry)
        outcome = self._outcome if has_result else self._success
        return [*([f"{kind['scope']} scope(call{takes});"] if "scope" in kind else []),
                f"{export.function.result} result = {call};" if has_result else f"{call};",
                *([f"scope.Finish({outcome}{gives});"] if "scope" in kind else []),
                *(f"if (result == {self._success}) {line}" for line in after),
                *(["return result;"] if has_result else [])]
