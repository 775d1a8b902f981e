# /// script
# [tool.xsched.env]
# HIP_LIBRARY = "{runtime}"
# ///
"""AMD's hipFFT and rocFFT: transforms in one and in two dimensions, on a stream of the caller."""
import ctypes
import os

NON_BLOCKING = 1
FORWARD = -1
R2C, C2C = 0x2A, 0x29

hip = ctypes.CDLL(os.environ["HIP_LIBRARY"])
fft = ctypes.CDLL("libhipfft.so.0")


def call(library, name, *arguments):
    if (result := getattr(library, name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: {result}")


def transform(stream, times, make, execute, *direction, size):
    memory, plan = ctypes.c_void_p(), ctypes.c_void_p()
    call(hip, "hipMalloc", ctypes.byref(memory), ctypes.c_size_t(size))
    call(fft, make[0], ctypes.byref(plan), *make[1:])
    call(fft, "hipfftSetStream", plan, stream)
    for _ in range(times):
        call(fft, execute, plan, memory, memory, *direction)
    call(hip, "hipStreamSynchronize", stream)
    call(fft, "hipfftDestroy", plan)


version = ctypes.c_int()
call(fft, "hipfftGetVersion", ctypes.byref(version))
stream = ctypes.c_void_p()
call(hip, "hipStreamCreateWithFlags", ctypes.byref(stream), NON_BLOCKING)
transform(stream, 300, ("hipfftPlan1d", 1024, C2C, 4), "hipfftExecC2C", FORWARD, size=1 << 16)
transform(stream, 300, ("hipfftPlan2d", 192, 240, R2C), "hipfftExecR2C", size=192 * 240 * 16)
call(hip, "hipStreamDestroy", stream)
print("hipFFT", version.value)
