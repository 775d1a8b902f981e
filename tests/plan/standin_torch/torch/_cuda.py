"""CUDA's driver, with a kernel of the stand-in driver."""
import ctypes

VERSIONS = {"cuda": "13.0", "hip": None}
LOOPS_PER_US = 100
NON_BLOCKING, BLOCKING_SYNC = 1, 1

_driver = ctypes.CDLL("libcuda.so.1")
_context, _work = ctypes.c_void_p(), ctypes.c_void_p()


def _call(name, *arguments):
    if (result := getattr(_driver, name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: {result}")


def is_available():
    return _driver.cuInit(0) == 0


def init():
    if not _context:
        _call("cuInit", 0)
        module = ctypes.c_void_p()
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(_context), 0)
        _call("cuCtxSetCurrent", _context)
        _call("cuModuleLoadData", ctypes.byref(module), b".version 6.0")
        _call("cuModuleGetFunction", ctypes.byref(_work), module, b"work")
    _call("cuCtxSetCurrent", _context)


def synchronize():
    init()
    _call("cuCtxSynchronize")


def new_stream():
    handle = ctypes.c_void_p()
    _call("cuStreamCreate", ctypes.byref(handle), NON_BLOCKING)
    return handle.value


def synchronize_stream(handle):
    _call("cuStreamSynchronize", ctypes.c_void_p(handle))


def new_event():
    handle = ctypes.c_void_p()
    _call("cuEventCreate", ctypes.byref(handle), BLOCKING_SYNC)
    return handle


def record(event, stream):
    _call("cuEventRecord", event, ctypes.c_void_p(stream))


def synchronize_event(event):
    _call("cuEventSynchronize", event)


def launch(us, stream):
    beat, loops = ctypes.c_uint64(0), ctypes.c_uint(int(us * LOOPS_PER_US))
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(beat), ctypes.addressof(loops))
    _call("cuLaunchKernel", _work, 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream), parameters, None)
