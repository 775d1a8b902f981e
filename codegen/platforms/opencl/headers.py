"""The functions and types of installed OpenCL headers."""

import re

from c_headers import HeaderReader

# Headers that compile everywhere; functions of the others (Direct3D, VA-API) are wrapped if they need no types of theirs.
PORTABLE_HEADERS = ("cl.h", "cl_ext.h", "cl_gl.h", "cl_egl.h")
NOT_FUNCTIONS = ("cl_icd.h", "cl_layer.h", "cl_platform.h", "cl_half.h", "cl_version.h", "opencl.h", "cl_function_types.h")
PLAIN_TYPES = set("void char int long short unsigned signed const size_t intptr_t uintptr_t float double".split())


def read_functions(directory):
    """name -> Function"""
    reader = HeaderReader(r"cl[A-Z]\w*", r"CL_API_ENTRY|CL_API_CALL|CL_CALLBACK|CL_(?:API|EXT)_(?:SUFFIX|PREFIX)_\w+")
    functions = {}
    for path in sorted(directory.glob("*.h")):
        if path.name not in NOT_FUNCTIONS:
            for name, function in reader.read(path.read_text(), path.name).items():
                functions.setdefault(name, function)
    return functions


def read_dispatch_members(directory):
    """The functions in the table that the ICD loader hands to layers."""
    text = (directory / "cl_icd.h").read_text()
    body = re.search(r"typedef struct _cl_icd_dispatch\s*\{(.*?)\}", text, re.S)[1]
    return set(re.findall(r"(cl[A-Z]\w*)\s*;", body))


def read_known_types(directory):
    words = set(PLAIN_TYPES)
    for name in PORTABLE_HEADERS + ("cl_platform.h",):
        words |= set(re.findall(r"\w+", (directory / name).read_text()))
    return words
