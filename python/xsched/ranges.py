"""Checks numbers before they are given to the C library: it ignores or changes what is out of range, and ctypes cuts off what does not fit."""
import operator
from typing import Any

from .constants import Result
from .library import XSchedError


class RangeError(XSchedError, ValueError):
    """A value is out of its range, and nothing has changed. `result` is INVALID_VALUE."""

    def __init__(self, function: str, message: str) -> None:
        super().__init__(function, Result.ERROR_INVALID_VALUE, message)


def in_range(function: str, name: str, number: Any, least: int, most: int) -> int:
    """The number, for this C function. RangeError: it is no whole number of the range."""
    if isinstance(number, bool) or not hasattr(number, "__index__") or not least <= number <= most:
        raise RangeError(function, f"{name}: {number!r} is no whole number from {least} to {most}")
    return operator.index(number)
