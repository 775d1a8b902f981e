"""What AMD's libraries export, and the dispatch table that they offer to tools (registry/hip). No header of AMD's is needed.

A function has a name (what programs write, and the registry lists) and exports:
    hipLaunchKernel         itself
    hipLaunchKernel_spt     the same, where the null stream is the calling thread's own
    _Z24hipExtModule…       the same as hipExtModuleLaunchKernel, as C++ names it
"""

import re
from collections import defaultdict

from c_headers import Function, HeaderReader
from exports import Export
from registry import RegistryError


def read_exports(directory):
    """symbol -> the version of HIP that brought it, as the symbol's version; of all libraries that are known."""
    exports = {}
    for path in sorted(directory.glob("exports-*.txt")):
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                symbol, version = line.split()
                exports.setdefault(symbol, version)
    if not exports:
        raise RegistryError(f"{directory}: no exports-*.txt")
    return exports


def read_dispatch_table(directory):
    """[(name, the version of HIP from which on it is there, in the number that tools get)]"""
    table, since = [], 0
    for line in (directory / "dispatch_table.txt").read_text().splitlines():
        if line.startswith("since "):
            major, minor = line.removeprefix("since ").split(".")
            since = int(major) * 10000 + int(minor) * 100
        elif line and not line.startswith(("#", "step ")):
            table.append((line, since))
    return table


def name_of(symbol, exports):
    """The name by which the registry lists an export."""
    mangled = re.match(r"_ZN8hip_impl(\d+)|_Z(\d+)", symbol)
    if mangled:
        return symbol[mangled.end():mangled.end() + int(mangled[1] or mangled[2])]
    twin = symbol.removesuffix("_spt")
    return twin if twin in exports else symbol


def read_functions(registry, exports):
    """name -> [Export], with the parameters that the registry says."""
    functions = defaultdict(list)
    for symbol, since in sorted(exports.items()):
        name = name_of(symbol, exports)
        entry = registry.entries.get(name)
        text = entry.details.get("c") if entry else None
        if entry and entry.wrapped and text is None:
            raise RegistryError(f"{name} is wrapped, but has no parameters (c)")
        unique = name + "_cxx" if symbol.startswith("_Z") else symbol
        returns = entry.details.get("returns", "hipError_t") if entry else "hipError_t"
        function = Function(unique, returns, HeaderReader.parameters(text or ""), "libamdhip64")
        functions[name].append(Export(function, symbol, symbol.endswith("_spt"), since))
    return functions
