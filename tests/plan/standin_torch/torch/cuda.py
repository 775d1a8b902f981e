"""Streams, events and one kernel, by the driver's own functions."""
import contextlib
import ctypes
import threading

ELEMENTS_PER_LOOP = 100  # a loop takes the stand-in 10 ns
NON_BLOCKING, BLOCKING_SYNC = 1, 1

_driver = ctypes.CDLL("libcuda.so.1")
_here = threading.local()
_context, _work = ctypes.c_void_p(), ctypes.c_void_p()


def _call(name, *arguments):
    if (result := getattr(_driver, name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: {result}")


def is_available():
    return _driver.cuInit(0) == 0


def device_count():
    return 1


def get_device_name(index):
    return "stand-in"


def get_device_properties(index):
    class Properties:
        total_memory = 1 << 30
    return Properties


def init():
    if not _context:
        _call("cuInit", 0)
        module = ctypes.c_void_p()
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(_context), 0)
        _call("cuCtxSetCurrent", _context)
        _call("cuModuleLoadData", ctypes.byref(module), b".version 6.0")
        _call("cuModuleGetFunction", ctypes.byref(_work), module, b"work")
    _call("cuCtxSetCurrent", _context)


class Stream:
    def __init__(self):
        init()
        handle = ctypes.c_void_p()
        _call("cuStreamCreate", ctypes.byref(handle), NON_BLOCKING)
        self.cuda_stream = handle.value

    def synchronize(self):
        _call("cuStreamSynchronize", ctypes.c_void_p(self.cuda_stream))


class Event:
    def __init__(self, blocking):
        init()
        self._handle = ctypes.c_void_p()
        _call("cuEventCreate", ctypes.byref(self._handle), BLOCKING_SYNC)

    def record(self, stream):
        _call("cuEventRecord", self._handle, ctypes.c_void_p(stream.cuda_stream))

    def synchronize(self):
        _call("cuEventSynchronize", self._handle)


@contextlib.contextmanager
def stream(stream_):
    _here.stream = stream_
    yield
    _here.stream = None


def synchronize():
    init()
    _call("cuCtxSynchronize")


def launch(elements):
    init()
    current = getattr(_here, "stream", None)
    beat, loops = ctypes.c_uint64(0), ctypes.c_uint(elements // ELEMENTS_PER_LOOP)
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(beat), ctypes.addressof(loops))
    _call("cuLaunchKernel", _work, 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(current and current.cuda_stream), parameters, None)
