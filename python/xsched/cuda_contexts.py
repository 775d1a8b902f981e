"""CUDA's current context, which decides whose default stream a call means. A thread has none before its first command on the GPU."""
import contextlib
import ctypes
import functools
import os
from typing import Iterator, Optional

from .constants import Result
from .library import XSchedError


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    """The driver that the process has loaded. XSchedError: NOT_FOUND: it has loaded none."""
    named = os.environ.get("XSCHED_CUDA_LIB")
    try:
        driver = ctypes.CDLL(named) if named else ctypes.CDLL("libcuda.so.1", os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError as error:
        # The linker says nothing of a library that is there and not loaded.
        why = error if named else "libcuda.so.1 is not loaded"
        raise XSchedError("CudaQueueCreate", Result.ERROR_NOT_FOUND, f"CudaQueueCreate: not found: {why}") from error
    driver.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]
    return driver


def _call(function: str, *arguments: object) -> None:
    if result := getattr(_driver(), function)(*arguments):
        raise XSchedError(function, Result.ERROR_HARDWARE, f"{function}: CUDA's error {result}")


def _current_device() -> Optional[int]:
    """The driver's number for the device of the current context. None: no context is current."""
    context, device = ctypes.c_void_p(), ctypes.c_int()
    if _driver().cuCtxGetCurrent(ctypes.byref(context)) or not context.value:
        return None
    _call("cuCtxGetDevice", ctypes.byref(device))
    return device.value


@functools.lru_cache(maxsize=None)
def _primary_context(device: int) -> ctypes.c_void_p:
    """The one that CUDA's runtime uses. It is made if it does not exist yet, and kept as long as the process, as the runtime keeps it."""
    context = ctypes.c_void_p()
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


@contextlib.contextmanager
def on_device(number: Optional[int]) -> Iterator[None]:
    """In the block, a context of the runtime's device with this number is current. None: the one that is current already.

    XSchedError: the process has no driver; the device is not known, and no context is current; or the driver refuses.
    """
    current = _current_device()
    if number is None:
        if current is None:
            raise XSchedError("CudaQueueCreate", Result.ERROR_HARDWARE,
                              "no CUDA context is current in this thread, so its default stream is not known: pass a stream of PyTorch or "
                              "CuPy, or use the GPU in this thread first")
        yield
        return
    device = ctypes.c_int()
    _call("cuDeviceGet", ctypes.byref(device), number)
    if device.value == current:
        yield
        return
    _call("cuCtxPushCurrent_v2", _primary_context(device.value))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
