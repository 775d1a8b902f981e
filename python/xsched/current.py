"""The frameworks that the program uses, the streams that are current in them, and new streams.

Nothing is imported that the program has not imported.
"""
import os
import re
import sys
from types import ModuleType
from typing import Any, Dict, List, Optional

from . import cupy, torch
from .constants import PRIORITY_DEFAULT, PRIORITY_MAX, PRIORITY_NO_EXECUTE

_FRAMEWORKS: Dict[str, ModuleType] = {"torch": torch, "cupy": cupy}


def _used() -> List[ModuleType]:
    return [ours for name, ours in _FRAMEWORKS.items() if name in sys.modules and ours.has_device()]


def current_streams() -> List[Any]:
    """The current stream of this thread in each framework. RuntimeError: there is none."""
    found = {ours.address(stream): stream for ours in _used() for stream in [ours.current_stream()]}
    if not found:
        raise RuntimeError("no stream is current, because the program has not imported PyTorch or CuPy, or they find no device: "
                           "say stream=…")
    return list(found.values())


def _process_priority() -> int:
    """What `xsched run` says, otherwise 0. As the C library reads it."""
    text = os.environ.get("XSCHED_AUTO_XQUEUE_PRIORITY", "")
    if re.fullmatch(r"\s*[+-]?[0-9]+", text) and PRIORITY_NO_EXECUTE <= int(text) <= PRIORITY_MAX:
        return int(text)
    return PRIORITY_DEFAULT


def stream(priority: Optional[int] = None, *, framework: Optional[str] = None, **hints: Any) -> Any:
    """A new stream with hints, of PyTorch or CuPy: `with xsched.stream(priority=10): …` makes it current as theirs do.

    framework: "torch" or "cupy". None: the one that the program has imported; PyTorch, if both. hints: as those of xsched.hints. They are kept
    until others are set; so is the queue, until the program destroys the stream. Without any hint: the priority that `xsched run` says,
    otherwise 0.

    Without `xsched run`, hints of CuPy's new streams have no effect. PyTorch does not make a new stream each time, but takes the next one of 32 per device. With more than that, two have the same queue.
    RangeError (a ValueError): a hint is out of range. RuntimeError: no framework is imported, or it finds no device.
    XSchedError, OSError: as XSchedQueue's.
    """
    from .hint_blocks import checked_hints, set_hint
    from .queue import queue_over

    if priority is None and not hints:
        priority = _process_priority()  # PyTorch's stream may still have the priority that its former user set
    values = checked_hints({"priority": priority, **hints})
    if framework is not None and framework not in _FRAMEWORKS:
        raise ValueError(f"framework: {framework!r} is none of {', '.join(_FRAMEWORKS)}")
    used = _used() if framework is None else [_FRAMEWORKS[framework]]
    if not used:
        raise RuntimeError("stream: import PyTorch or CuPy first")
    made = used[0].new_stream()
    handle = queue_over(made)
    if handle is not None:
        for kind, value in values.items():
            set_hint(handle, kind, *value)
    return made
