"""HIP: what AMD's libraries export, with the parameters that the registry says. A process may have several runtime instances, and some
offer a dispatch table to tools.

It also writes, for a stand-in of the runtime: standin.inc, the wrapped functions; own_names.h, names for the stand-in's own functions.
"""

import pathlib

from c_text import arguments, generated_by, rows, signature
from instanced_shim import Hidden, InstancedShim
from platforms.hip.checks import symbols_of, wrong_kinds
from platforms.hip.exports import read_dispatch_table, read_exports, read_functions
from platforms.hip.handles import Handles
from platforms.hip.headers import differing_signatures, read_headers
from shim import exported_address

# What a function returns if a runtime instance does not have it.
MISSING = {"hipError_t": " kNoSuchFunction", "int": " -1", "const char*": " nullptr", "void": ""}


class HipShim(InstancedShim):
    platform = "hip"
    title = "HIP"
    command_line = {"--headers": {"type": pathlib.Path, "help": "the folder hip of installed headers, to be checked against"},
                    "--library": {"help": "a libamdhip64, to be checked against"}}
    source = "the libraries"
    functions_struct = "WrappedFunctions"
    abi_header = "hal/hip/hip_abi.h"
    scope_headers = ("commands", "devices", "events", "lookup", "memory", "streams")
    success = "hipSuccess"
    out_of_memory = "OutOfMemory(call)"
    stream_type = "hipStream_t"
    why_no_version = ": they then stand for any that a program asks for (hip_4.2 and so on)"
    hidden_symbols = "_Z[A-MO-Za-z]*; _ZN[!8]*;"  # _ZN8hip_impl is the runtime's
    max_instances = "kMaxInstances"
    hidden = (Hidden("Target target", "ByPointer(instances[kInstance])", "ByLinking(__builtin_return_address(0))"),
              Hidden("const void* site", "__builtin_return_address(0)", "__builtin_return_address(0)"))

    def __init__(self, registry, options):
        self._handles = Handles(registry)
        self._table = read_dispatch_table(registry.folder)
        super().__init__(registry, options)

    def read(self):
        return read_functions(self.registry, read_exports(self.registry.folder))

    def types(self):
        types = self.registry.types
        enums = "\n".join(f"using {name} = unsigned;" for name in types["enums"])
        handles = "\n".join(f"using {name} = void*;" for name in types["handles"])
        structures = "\n".join(f"struct {name};" for name in types["structures"])
        return f"// What is only passed on.\n{enums}\n{handles}\n{structures}\n\n"

    def call(self, export, entry):
        uses = self._handles.used(export, entry)
        return [f"Call call(target, {self.index[export.name]}, site);",
                *([f"call.Uses({', '.join(uses)});"] if uses else [])]

    def missing(self, function):
        return [f"if (next == nullptr) [[unlikely]] next = call.exported().{function.name};",
                f"if (next == nullptr) return{MISSING[function.result]};"]

    def around(self, export, entry):
        ends = entry.details.get("ends")
        return [f"call.Ends({ends});"] if ends else [], [f"call.{made};" for made in self._handles.made(export, entry)]

    def declarations(self):
        return "shim/hip/instances.h", f"""struct Wrapper {{
  void* exported;
  void* by_pointer[kMaxInstances];
}};

// In the order of kFunctionNames.
extern const Wrapper kWrappers[kFunctionCount];

// The runtime's dispatch table as it offers it to tools, behind its size.
struct TableEntry {{
  const char* name;
  int function;  // index in kWrappers; -1: its entry stays as it is
  uint64_t since;  // the table's version, below which another function may be there
}};
inline constexpr int kTableLength = {len(self._table)};
extern const TableEntry kTable[kTableLength];
"""

    def tables(self):
        wrappers = [f"{{{exported_address(export)}, {{{self.ways_in(export)}}}}}," for export in self.functions]
        patched = {export.symbol: self.index[export.name] for export, entry in self.wrapped if entry.kind != "lookup"}
        entries = [f'{{"{name}", {patched.get(name, -1)}, {since}}},' for name, since in self._table]
        return f"""const Wrapper kWrappers[kFunctionCount] = {{
{rows(wrappers)}
}};

const TableEntry kTable[kTableLength] = {{
{rows(entries)}
}};
"""

    # ---- for the stand-in ----

    def further_files(self):
        own_names = "".join(f"#define {export.name} Own_{export.name}\n" for export, _ in self.wrapped)
        return {"standin.inc": self._write_standin(),
                "own_names.h": f"{generated_by(self.platform)}#pragma once\n\n{own_names}"}

    def _write_standin(self):
        """XSCHED_FUNCTION(result, name, symbol, parameters, arguments, is it a launch, its stream) for each; the dispatch table's
        XSCHED_TABLE_ENTRY(name, the version that has it)."""
        functions = "".join(self._standin_row(export, entry) for export, entry in self.wrapped)
        entries = "".join(f"XSCHED_TABLE_ENTRY({name}, {since})\n" for name, since in self._table)
        return f"""{generated_by(self.platform)}#ifdef XSCHED_FUNCTION
{functions}#endif
#ifdef XSCHED_TABLE_ENTRY
{entries}#endif
"""

    def _standin_row(self, export, entry):
        launches = entry.is_launch and "stream" in self.registry.kinds[entry.kind].get("takes", [])
        stream = self.roles.of("stream", export, entry) if launches else "nullptr"
        function = export.function
        return (f"XSCHED_FUNCTION({function.result}, {export.name}, \"{export.symbol}\", ({signature(function)}), "
                f"({arguments(function)}), {int(launches)}, ({stream}))\n")

    # ---- checks ----

    def faults(self):
        yield from (f"{name} is classified, but not exported" for name in self.coverage.absent)
        yield from wrong_kinds(self.registry, self.exports, self.registry.folder / "stream_functions.txt")
        if self.options.library:
            known = {export.symbol for exports in self.exports.values() for export in exports}
            yield from (f"{symbol} is exported, but not known" for symbol in sorted(symbols_of(self.options.library) - known))
        if self.options.headers:
            declared = read_headers(self.options.headers)
            yield from (f"{name} is declared, but not classified" for name in sorted(set(declared) - set(self.registry.entries)))
            yield from differing_signatures(self.exports, declared)
