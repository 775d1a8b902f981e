"""The functions of installed CUDA headers.

A function of the driver has three names:
    cuMemcpyHtoD               its name: what programs write, ask cuGetProcAddress for, and the registry lists;
    cuMemcpyHtoD_v2_ptds       an export: one ABI, and one meaning of the default stream;
    PFN_cuMemcpyHtoD_v7000_ptds   the type of such an ABI, with the version of CUDA that brought it (cudaTypedefs.h).
The headers do not say which type is which export's: they are so in order, per name and variant, and the compiler checks
each pair.
"""

import re
import subprocess
from collections import defaultdict

from c_headers import HeaderReader
from exports import Export
from registry import RegistryError

# With this, cuda.h declares every export under its own name, old versions included.
EVERY_VERSION = "__CUDA_API_VERSION_INTERNAL"


def read_exports(compiler, directory):
    """name -> [Export], each with its type and its version of CUDA, as in cuGetProcAddress."""
    return exports_in(_preprocess(compiler, directory))


def exports_in(text):
    types, exports = _types_in(text), defaultdict(list)
    for (name, per_thread), functions in _functions_in(text).items():
        of_name = types.get((name, per_thread), [])
        if len(of_name) != len(functions):
            raise RegistryError(f"{name}: {len(functions)} exports, but {len(of_name)} types")
        for function, (version, type_name) in zip(functions, of_name):
            exports[name].append(Export(function, function.name, per_thread, version, type_name))
    return exports


def _preprocess(compiler, directory):
    command = [compiler, "-E", "-P", f"-D{EVERY_VERSION}", f"-I{directory}", "-xc", "-"]
    try:
        return subprocess.run(command, input="#include <cudaTypedefs.h>", check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        raise RegistryError(f"{directory}: {error.stderr}") from error


def _types_in(text):
    """(name, is it per thread) -> [(version, name of the type)], in order."""
    types = defaultdict(list)
    for type_name, name, version, variant in re.findall(r"\*\s*(PFN_(cu[A-Z]\w*?)_v(\d+)(_pts?d?[sz])?)\)", text):
        types[name, bool(variant)].append((int(version), type_name))
    return {key: sorted(found) for key, found in types.items()}


def _functions_in(text):
    """(name, is it per thread) -> [Function], in order of their versions."""
    functions = defaultdict(list)
    for exported, function in HeaderReader(r"cu[A-Z]\w*", r"__attribute__").read(text, "cuda.h").items():
        name, version, variant = re.fullmatch(r"(\w+?)(?:_v(\d+))?(_ptds|_ptsz)?", exported).groups()
        functions[name, bool(variant)].append((int(version or 1), function))
    return {key: [function for _, function in sorted(found, key=lambda pair: pair[0])] for key, found in functions.items()}
