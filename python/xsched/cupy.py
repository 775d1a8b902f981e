"""XSched for CuPy. `import xsched.cupy` imports CuPy only when a function is called.

    with xsched.cupy.stream(priority=10):
        c = a @ b

Bigger numbers are more urgent.
"""
from typing import Any, Optional


def has_device() -> bool:
    """True if CuPy finds a GPU."""
    import cupy

    return bool(cupy.is_available())


def current_stream() -> Any:
    """CuPy's current stream of the current device, in this thread."""
    import cupy

    return cupy.cuda.get_current_stream()


def new_stream() -> Any:
    """A stream that does not wait for the default stream."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def address(stream: Any) -> int:
    """What tells streams apart."""
    return int(stream.ptr)


def stream(priority: Optional[int] = None, **hints: Any) -> Any:
    """xsched.stream for CuPy. `with xsched.cupy.stream(priority=10):` makes it current."""
    from .current import stream as stream_of

    return stream_of(priority, framework="cupy", **hints)
