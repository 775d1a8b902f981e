"""XSched for PyTorch, on any of its GPUs. `import xsched.torch` imports PyTorch only when a function is called.

    with xsched.torch.stream(priority=10):
        model(request)

Bigger numbers are more urgent here. PyTorch's own `torch.cuda.Stream(priority=-1)` counts the other way, and decides only between kernels
that are at work at the same time; XSched's hint sets that as well.

A graph has the hints of the stream on which it is replayed, not of the one on which it was captured.
"""
from typing import Any, Optional


def has_device() -> bool:
    """True if PyTorch finds a GPU."""
    import torch

    return bool(torch.cuda.is_available())


def current_stream() -> Any:
    """PyTorch's current stream of the current device, in this thread."""
    import torch

    return torch.cuda.current_stream()


def new_stream() -> Any:
    """The next stream of PyTorch's pool for the current device."""
    import torch

    return torch.cuda.Stream()


def address(stream: Any) -> int:
    """What tells streams apart."""
    return int(stream.cuda_stream)


def stream(priority: Optional[int] = None, **hints: Any) -> Any:
    """xsched.stream for PyTorch, as a block: `with xsched.torch.stream(priority=10):` makes it current."""
    import torch

    from .current import stream as stream_of

    return torch.cuda.stream(stream_of(priority, framework="torch", **hints))
