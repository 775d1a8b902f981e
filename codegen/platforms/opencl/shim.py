"""OpenCL: the functions of the installed CL headers. A process may have several instances, and a loader that calls layers."""

import pathlib

from exports import Export
from instanced_shim import Hidden, InstancedShim
from platforms.opencl.headers import PORTABLE_HEADERS, read_dispatch_members, read_functions, read_known_types
from registry import RegistryError
from shim import exported_address


# A program may have chosen the queue that these calls return (xsched/opencl/cmdq.h).
RETURN_CHOSEN = ["if (cl_command_queue chosen = ChosenQueue(call)) {",
                 "  if (errcode_ret != nullptr) *errcode_ret = CL_SUCCESS;",
                 "  return chosen;",
                 "}"]


class OpenCLShim(InstancedShim):
    platform = "opencl"
    title = "OpenCL"
    command_line = {"--headers": {"type": pathlib.Path, "required": True, "help": "the folder CL of the installed headers"}}
    abi_header = "hal/opencl/cl.h"
    scope_headers = ("callbacks", "chosen_queue", "commands", "lookup", "queues", "recordings")
    success = "CL_SUCCESS"
    outcome = "Succeeded(result)"
    call_convention = "CL_API_CALL "
    why_no_version = ": they then stand for any that a program's own OpenCL library has (OPENCL_1.0 and so on)"
    max_instances = "kMaxRoutes"
    hidden = (Hidden("Route& route", "routes[kInstance]", "RouteOfCaller(__builtin_return_address(0))"),)

    def __init__(self, registry, options):
        self._types = read_known_types(options.headers)
        self._dispatch = read_dispatch_members(options.headers)
        super().__init__(registry, options)
        self._check_launches()

    def read(self):
        return {name: [Export(function, name)] for name, function in read_functions(self.options.headers).items()}

    def is_known_type(self, name):
        return name in self._types

    def _check_launches(self):
        """A launch whose blocking flag or events were overlooked would be scheduled wrongly, silently."""
        for export, entry in self.wrapped:
            if not entry.is_launch:
                continue
            takes = [*self.registry.kinds[entry.kind]["takes"], "blocking", "event"]
            explained = {self.roles.of(role, export, entry) for role in takes}
            for parameter in export.function.parameters:
                if parameter.type in ("cl_bool", "cl_event*", "const cl_event*") and parameter.name not in explained:
                    raise RegistryError(f"{export.name}: what is {parameter.declaration}?")

    def call(self, _export, entry):
        return ["Call call(route);", *(RETURN_CHOSEN if entry.kind == "create" else [])]

    def missing(self, function):
        if function.result == "cl_int":
            return ["if (next == nullptr) [[unlikely]] return CL_INVALID_OPERATION;"]
        if not function.parameter("errcode_ret"):
            return ["if (next == nullptr) [[unlikely]] return nullptr;"]
        return ["if (next == nullptr) [[unlikely]] {",
                "  if (errcode_ret != nullptr) *errcode_ret = CL_INVALID_OPERATION;",
                "  return nullptr;",
                "}"]

    def is_exported(self, export):
        return export.name in self._dispatch and export.function.header in PORTABLE_HEADERS

    def declarations(self):
        return "shim/opencl/routes.h", """inline constexpr size_t kNotInDispatch = ~size_t{0};

struct Wrapper {
  size_t dispatch_offset;  // of the function in cl_icd_dispatch
  void* exported;          // null: not exported
  void* via[kMaxRoutes];   // null: not wrapped
};

// In the order of kFunctionNames.
extern const Wrapper kWrappers[kFunctionCount];
"""

    def tables(self):
        wrapped = {export.name for export, _ in self.wrapped}
        rows = "".join(self._row(export, export.name in wrapped) for export in self.functions)
        return f"const Wrapper kWrappers[kFunctionCount] = {{\n{rows}}};\n"

    def _row(self, export, is_wrapped):
        dispatch = f"offsetof(cl_icd_dispatch, {export.name})" if export.name in self._dispatch else "kNotInDispatch"
        exported = exported_address(export) if is_wrapped and self.is_exported(export) else "nullptr"
        via = self.ways_in(export) if is_wrapped else ""
        return f"    // {export.name}\n    {{{dispatch}, {exported}, {{{via}}}}},\n"
