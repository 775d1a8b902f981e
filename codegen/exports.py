"""A function as a platform's library exports it."""

from dataclasses import dataclass

from c_headers import Function


@dataclass(frozen=True)
class Export:
    function: Function  # its name is one for C++
    symbol: str  # as the linker knows it
    per_thread: bool = False  # the default stream is the calling thread's own
    since: object = None  # the version of the platform that brought it
    type: str = ""  # the header's name for the type of a pointer to it

    @property
    def name(self):
        return self.function.name
