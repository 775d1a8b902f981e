"""XSched's C API, if XSched is in the process: controls the queues of a program's streams, on CUDA and on HIP."""
import ctypes
import functools
import re

SUSPEND_AND_WAIT = 1  # kQueueSuspendFlagSyncHwQueue


def _platform():
    """PyTorch's platform. If both platforms have runtimes, both of XSched's libraries are loaded."""
    import torch  # here, because present() must not need it

    return "hip" if torch.version.hip else "cuda"


def _loaded(name):
    """The path of a library of XSched that this process has loaded in any way."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found = re.search(rf"/.*/lib{name}\.so\S*", maps.read())
    return found and found[0]


def present():
    return _loaded("shim(cuda|hip)") is not None


@functools.cache
def _hal():
    """What it depends on is found through it, too."""
    found = _loaded(f"hal{_platform()}")
    if found is None:
        raise RuntimeError("XSched is not in the process")
    return ctypes.CDLL(found)


def _call(name, *arguments):
    if (result := getattr(_hal(), name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: XResult {result}")


def queue_of(stream):
    """`stream`: a torch.cuda.Stream on which work was launched."""
    hardware_queue, queue = ctypes.c_uint64(), ctypes.c_uint64()
    _call(f"{_platform().capitalize()}QueueGet", ctypes.byref(hardware_queue), ctypes.c_void_p(stream.cuda_stream))
    _call("XQueueGet", ctypes.byref(queue), hardware_queue)
    return queue


def set_priority(stream, priority):
    _call("XHintPriority", queue_of(stream), ctypes.c_int32(priority))


def suspend(queue):
    """Returns when the commands in flight have finished."""
    _call("XQueueSuspend", queue, ctypes.c_int64(SUSPEND_AND_WAIT))


def resume(queue):
    _call("XQueueResume", queue, ctypes.c_int64(0))
