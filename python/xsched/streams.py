"""What people call a stream, as the handle that the C library takes, and the platform that it is of."""
import ctypes
import re

PLATFORMS = {"cuda": ("halcuda", "CudaQueueCreate"), "hip": ("halhip", "HipQueueCreate"),
             "opencl": ("halopencl", "OclQueueCreate")}
_RUNTIMES = {"hip": r"/libamdhip64[^/]*\.so", "cuda": r"/libcuda\.so", "opencl": r"/libOpenCL\.so"}


def stream_handle(stream):
    """The address that a stream stands for; 0: the default stream.

    Takes None, an int, a ctypes pointer, and the stream and queue objects of PyTorch (cuda_stream), CuPy (ptr), PyOpenCL
    (int_ptr) and whoever has __cuda_stream__.
    """
    if stream is None:
        return 0
    if isinstance(stream, ctypes.c_void_p):
        return stream.value or 0
    if isinstance(stream, ctypes._Pointer):  # there is no other way to tell one
        return ctypes.cast(stream, ctypes.c_void_p).value or 0
    for attribute in ("cuda_stream", "int_ptr", "ptr"):
        value = getattr(stream, attribute, None)
        if isinstance(value, int):
            return value
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    try:
        return int(stream.__index__())
    except AttributeError:
        raise TypeError(f"a stream, its address or None is expected, not {type(stream).__name__}") from None


def platform_of(stream):
    """"cuda", "hip" or "opencl". ValueError: it cannot be told, and has to be said."""
    module = type(stream).__module__.split(".")[0]
    if module == "pyopencl":
        return "opencl"
    if module == "torch":
        import torch  # it is there already

        return "hip" if torch.version.hip else "cuda"
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        text = maps.read()
    loaded = [name for name, runtime in _RUNTIMES.items() if re.search(runtime, text)]
    if len(loaded) != 1:
        raise ValueError(f"of which platform is the stream? This process has loaded {' and '.join(loaded) or 'none'}: "
                         "say platform=\"cuda\", \"hip\" or \"opencl\"")
    return loaded[0]
