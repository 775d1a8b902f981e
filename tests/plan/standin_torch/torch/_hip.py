"""AMD's own runtime over the software agent. A kernel is a write to the device's memory, which XSched may hold, and then a host
function that sleeps, so that its stream waits."""
import ctypes
import functools
import time

VERSIONS = {"cuda": None, "hip": "5.2"}
NON_BLOCKING, BLOCKING_SYNC = 1, 1


def _load():
    for name in ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise ImportError("libamdhip64.so")


_runtime = _load()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def _work(_stream, _status, us):
    time.sleep((us or 0) / 1e6)


def _call(name, *arguments):
    if (result := getattr(_runtime, name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: {result}")


def is_available():
    return _runtime.hipInit(0) == 0


def init():
    _call("hipSetDevice", 0)


def synchronize():
    _call("hipDeviceSynchronize")


def new_stream():
    handle = ctypes.c_void_p()
    _call("hipStreamCreateWithFlags", ctypes.byref(handle), NON_BLOCKING)
    return handle.value


def synchronize_stream(handle):
    _call("hipStreamSynchronize", ctypes.c_void_p(handle))


def new_event():
    handle = ctypes.c_void_p()
    _call("hipEventCreateWithFlags", ctypes.byref(handle), BLOCKING_SYNC)
    return handle


def record(event, stream):
    _call("hipEventRecord", event, ctypes.c_void_p(stream))


def synchronize_event(event):
    _call("hipEventSynchronize", event)


@functools.cache
def _memory():
    address = ctypes.c_void_p()
    _call("hipMalloc", ctypes.byref(address), 4)
    return address


def launch(us, stream):
    _call("hipMemsetAsync", _memory(), 0, 4, ctypes.c_void_p(stream))
    _call("hipStreamAddCallback", ctypes.c_void_p(stream), _work, ctypes.c_void_p(int(us)), 0)
