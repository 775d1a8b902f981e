# /// script
# [tool.xsched]
# runtime = "system"
# libraries = ["hipblaslt"]
# [tool.xsched.env]
# HIP_LIBRARY = "{runtime}"
# ///
"""hipBLASLt multiplies matrices on a stream of the caller, by its own choice of a kernel."""
import ctypes
import ctypes.util
import os

NON_BLOCKING = 1
FLOAT, COMPUTE_FLOAT = 0, 2
SIZE = 256

hip = ctypes.CDLL(os.environ["HIP_LIBRARY"])
lt = ctypes.CDLL(ctypes.util.find_library("hipblaslt"))


def call(library, name, *arguments):
    if (result := getattr(library, name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: {result}")


def made(library, name, *arguments):
    handle = ctypes.c_void_p()
    call(library, name, ctypes.byref(handle), *arguments)
    return handle


handle = made(lt, "hipblasLtCreate")
product = made(lt, "hipblasLtMatmulDescCreate", COMPUTE_FLOAT, FLOAT)
layout = made(lt, "hipblasLtMatrixLayoutCreate", FLOAT, ctypes.c_uint64(SIZE), ctypes.c_uint64(SIZE), ctypes.c_int64(SIZE))
preference = made(lt, "hipblasLtMatmulPreferenceCreate")
# A result begins with the algorithm.
algorithm, found = ctypes.create_string_buffer(1024), ctypes.c_int()
call(lt, "hipblasLtMatmulAlgoGetHeuristic", handle, product, layout, layout, layout, layout, preference, 1, algorithm, ctypes.byref(found))

stream = made(hip, "hipStreamCreateWithFlags", NON_BLOCKING)
a, b, c = (made(hip, "hipMalloc", ctypes.c_size_t(4 * SIZE * SIZE)) for _ in range(3))
one, zero = ctypes.c_float(1), ctypes.c_float(0)
for _ in range(500):
    call(lt, "hipblasLtMatmul", handle, product, ctypes.byref(one), a, layout, b, layout, ctypes.byref(zero), c, layout, c, layout,
         algorithm, None, ctypes.c_size_t(0), stream)
call(hip, "hipStreamSynchronize", stream)
version = ctypes.c_int()
call(lt, "hipblasLtGetVersion", handle, ctypes.byref(version))
call(lt, "hipblasLtDestroy", handle)
print("hipBLASLt", version.value, "algorithms", found.value)
