"""Converts stream objects into the handles that the C library takes, and finds their platforms."""
import contextlib
import ctypes
import functools
import re
from typing import Any, ContextManager, Optional

from .platforms import PLATFORMS

STREAM_PLATFORMS = {name: platform for name, platform in PLATFORMS.items() if platform.RUNTIME}
_QUOTED = [f'"{name}"' for name in STREAM_PLATFORMS]
STREAM_PLATFORMS_TEXT = f"{', '.join(_QUOTED[:-1])} or {_QUOTED[-1]}"


def stream_handle(stream: Any) -> int:
    """The address of a stream; 0: the default stream.

    Takes None, an int, a ctypes pointer, stream and queue objects of PyTorch (cuda_stream), CuPy (ptr) and PyOpenCL (int_ptr), and objects
    with __cuda_stream__.
    """
    if stream is None:
        return 0
    if isinstance(stream, ctypes.c_void_p):
        return stream.value or 0
    if isinstance(stream, ctypes._Pointer):  # there is no other way to recognize one
        return ctypes.cast(stream, ctypes.c_void_p).value or 0
    for attribute in ("cuda_stream", "int_ptr", "ptr"):
        value = getattr(stream, attribute, None)
        if isinstance(value, int):
            return value
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    try:
        return int(stream.__index__())
    except AttributeError:
        raise TypeError(f"a stream, its address or None is expected, not {type(stream).__name__}") from None


def is_default_stream(handle: int) -> bool:
    """True if the handle says nothing of the device: it is one of the default streams."""
    return handle <= 2


def lasts(stream: Any, handle: int) -> bool:
    """True if the stream is never destroyed: a default stream, or one of PyTorch's pool."""
    if is_default_stream(handle):
        return True
    # The id of a stream that another library has made and PyTorch uses is its handle.
    return type(stream).__module__.split(".")[0] == "torch" and getattr(stream, "stream_id", handle) != handle


def device_of(stream: Any) -> Optional[int]:
    """The number of the stream's device at the runtime, if a framework shows it."""
    module = type(stream).__module__.split(".")[0]
    if module == "torch":
        return int(stream.device.index)
    if module == "cupy":
        import cupy  # it is imported already

        # CuPy's default streams are those of whatever device is current.
        return int(stream.device_id) if stream.device_id >= 0 else int(cupy.cuda.runtime.getDevice())
    return None


def frameworks_device(stream: Any) -> ContextManager[Any]:
    """A block in which the stream's device is current at its framework's runtime. Nothing changes for a stream that is of no framework."""
    module = type(stream).__module__.split(".")[0]
    block: ContextManager[Any] = contextlib.nullcontext()
    if module == "torch":
        import torch  # it is imported already

        block = torch.cuda.device(device_of(stream))
    elif module == "cupy":
        import cupy  # likewise

        block = cupy.cuda.Device(device_of(stream))
    return block


def check_platform(name: Optional[str]) -> None:
    """ValueError: it is given, and none of STREAM_PLATFORMS."""
    if name and name not in STREAM_PLATFORMS:
        raise ValueError(f"platform: {name!r} is none of {', '.join(STREAM_PLATFORMS)}")


def platform_of(stream: Any) -> str:
    """The name of one of STREAM_PLATFORMS. ValueError: it is not known, and must be given."""
    module = type(stream).__module__.split(".")[0]
    for name, platform in STREAM_PLATFORMS.items():
        if module == platform.MODULE:
            return name
    if module == "torch":
        import torch  # it is imported already

        # Of the platforms that it was not built for, the version is None.
        built_for = next((name for name in STREAM_PLATFORMS if getattr(torch.version, name, None)), None)
        if built_for is None:
            raise ValueError(f"this PyTorch is built for none of {STREAM_PLATFORMS_TEXT}: XSched does not schedule its streams")
        return built_for
    if module == "cupy":
        import cupy  # likewise

        return "hip" if cupy.cuda.runtime.is_hip else "cuda"
    return _only_loaded(stream_handle(stream))


@functools.lru_cache(maxsize=4096)  # reading the maps takes up to a millisecond
def _only_loaded(_stream: int) -> str:
    """The platform of a stream that shows none. A stream keeps it, even if the process loads another runtime later."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        text = maps.read()
    loaded = [name for name, platform in STREAM_PLATFORMS.items() if re.search(platform.RUNTIME, text)]
    if len(loaded) != 1:
        raise ValueError(f"of which platform is the stream? This process has loaded {' and '.join(loaded) or 'none'}: "
                         f"say platform={STREAM_PLATFORMS_TEXT}")
    return loaded[0]
