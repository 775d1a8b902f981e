"""CUDA: the driver's functions, from the installed headers. A process has one driver, so wrappers are exported functions."""

import pathlib
import re

from c_text import rows
from platforms.cuda.headers import read_exports
from shim import Shim, exported_address


class CudaShim(Shim):
    platform = "cuda"
    title = "CUDA"
    command_line = {"--headers": {"type": pathlib.Path, "required": True, "help": "the folder that has cuda.h"},
                    "--compiler": {"required": True, "help": "a C compiler, to preprocess the headers"}}
    holder = "the driver"
    abi_header = "hal/cuda/cu.h"
    scope_headers = ("code", "commands", "contexts", "current_context", "events", "graphs", "lookup", "memory",
                     "priorities", "streams")
    success = "CUDA_SUCCESS"
    out_of_memory = "CUDA_ERROR_OUT_OF_MEMORY"
    stream_type = "CUstream"
    why_no_version = ", as the driver's functions have none"

    def read(self):
        return read_exports(self.options.compiler, self.options.headers)

    def is_classified(self, name):
        return super().is_classified(re.sub(r"_v\d+$", "", name))

    def call(self, export, _entry):
        return [f"Call call({self.index[export.name]}, __builtin_return_address(0));"]

    def missing(self, _function):
        return ["if (next == nullptr) [[unlikely]] return CUDA_ERROR_NOT_FOUND;"]

    def assertions(self):
        checks = "\n".join(f"static_assert(std::is_same_v<{e.type}, decltype(&::{e.name})>);" for e in self.functions)
        return "\n#include <type_traits>\n", f"\n// The types are those of the exports.\n{checks}\n"

    def declarations(self):
        return "", f"""// In the order of kFunctionNames; null: not wrapped.
extern void* const kWrappers[kFunctionCount];

// What cuGetProcAddress knows a wrapped function as.
struct Version {{
  const char* symbol;
  int version;      // of CUDA, that brought this ABI
  bool per_thread;  // its default stream is the calling thread's own
  int function;     // index in kFunctionNames
}};

// By symbol, then per_thread, then version.
inline constexpr int kVersionCount = {len(self.wrapped)};
extern const Version kVersions[kVersionCount];

// Symbols of functions that are known to pass, in alphabetical order.
inline constexpr int kUntouchedCount = {len(self.coverage.untouched)};
extern const char* const kUntouched[kUntouchedCount];
"""

    def tables(self):
        wrapped = {export.name for export, _ in self.wrapped}
        wrappers = [f"{exported_address(e) if e.name in wrapped else 'nullptr'}," for e in self.functions]
        versions = sorted((entry.name, e.per_thread, e.since, self.index[e.name]) for e, entry in self.wrapped)
        return f"""void* const kWrappers[kFunctionCount] = {{
{rows(wrappers)}
}};

const Version kVersions[kVersionCount] = {{
{rows(f'{{"{name}", {version}, {str(per_thread).lower()}, {i}}},' for name, per_thread, version, i in versions)}
}};

const char* const kUntouched[kUntouchedCount] = {{
{rows(f'"{name}",' for name in self.coverage.untouched)}
}};
"""
