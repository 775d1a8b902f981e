"""For platforms of which a process may have several runtime instances. The wrapper of a function is hidden, and gets the instance as a
parameter. It is called in several ways: by a pointer, of which each instance has its own, and by an exported function. There the caller
decides which instance it is."""

from dataclasses import dataclass

from c_text import address, arguments
from shim import Shim


@dataclass(frozen=True)
class Hidden:
    """A parameter that a wrapper has behind the program's own, and its value for each way in."""
    declaration: str
    by_pointer: str
    by_linking: str


class InstancedShim(Shim):
    instances = 8  # that have ways in of their own
    max_instances = ""  # the constant of the shim that must be equal
    hidden = ()

    def is_exported(self, _export):
        return True

    def write_hidden_wrappers(self):
        wrappers = "\n".join(self._write_hidden_wrapper(export, entry) for export, entry in self.wrapped)
        ways = "\n".join(self._write_way(export, "static ", [hidden.by_pointer for hidden in self.hidden])
                         for export, _ in self.wrapped)
        return f"""namespace xsched::{self.platform} {{

static_assert({self.max_instances} == {self.instances});

// ---- the wrappers ----

{wrappers}
// ---- the ways in: by a pointer, one set per runtime instance … ----

template <int kInstance>
struct Via {{
{ways}}};

}}  // namespace xsched::{self.platform}

// ---- … and as exported functions, where the caller decides ----

"""

    def write_exports(self):
        return "\n".join(self._write_export(export) for export, _ in self.wrapped if self.is_exported(export))

    def ways_in(self, export):
        """For a row of a table: the addresses of its ways in, in the order of the instances."""
        return "".join(f"\n      {address(f'Via<{i}>::{export.name}')}," for i in range(self.instances))

    def _write_hidden_wrapper(self, export, entry):
        # The program's own parameters stay in their registers.
        parameters = [p.declaration for p in export.function.parameters] + [hidden.declaration for hidden in self.hidden]
        declaration = f"[[gnu::noinline]] {export.function.result} On_{export.name}({', '.join(parameters)})"
        return self.write_wrapper(declaration, export, entry)

    def _write_way(self, export, attribute, hidden):
        function = export.function
        values = ", ".join([*([arguments(function)] if function.parameters else []), *hidden])
        return f"""{attribute}{self.declaration(export)} {{
  return On_{export.name}({values});
}}
"""

    def _write_export(self, export):
        way = self._write_way(export, "XSCHED_EXPORT ", [hidden.by_linking for hidden in self.hidden])
        if export.symbol == export.name:
            return way
        return f'{self.declaration(export)} __asm__("{export.symbol}");\n{way}'
