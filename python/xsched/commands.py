"""The commands of XSchedQueue.submit: from submission until a thread of the C library calls their functions, or until they are dropped."""
import atexit
import contextlib
import itertools
import os
import threading
import time
from typing import TYPE_CHECKING, Callable, Dict, Optional, Set

from .constants import RESUME_DROP_COMMANDS, Result
from .library import LAUNCH_CALLBACK, XSchedError, call, handle, library

if TYPE_CHECKING:
    from .queue import XSchedQueue

_LONGEST_S = 5  # the end of the program waits no longer for a function that runs

# The commands that are neither launched nor dropped, by their numbers. The library has only the number, and the program may have nothing, so
# this keeps them alive. Whoever takes a command out decides: it is launched, or dropped.
_waiting: Dict[int, "Command"] = {}
_launching: Set["Command"] = set()  # their functions are running
_of_thread = threading.local()
_numbers = itertools.count(1)
_ended = False


class Command:
    """A command that was passed to XSchedQueue.submit."""

    def __init__(self, queue: "XSchedQueue", launch: Callable[[], object]) -> None:
        self._queue = queue  # kept, and its stream as well
        self._queue_handle = queue.handle  # also after close()
        self._launch = launch
        self._launched = False
        self._error: Optional[BaseException] = None
        self._number = next(_numbers)
        self._handle = handle("preempt", "HwCommandCreateCallback", _LAUNCH, self._number)

    def wait(self) -> None:
        """Waits until the work that the function put on the stream has finished. Raises the function's exception.

        Waits also while the queue is held. XSchedError: NOT_FOUND: it was dropped (XSchedQueue.resume), or the queue is closed.
        """
        call("preempt", "XQueueWait", self._queue.handle, self._handle)
        if not self._launched:
            raise XSchedError("XQueueWait", Result.ERROR_NOT_FOUND)
        if self._error is not None:
            raise self._error

    def _submit(self) -> None:
        if _ended:
            raise RuntimeError("submit: the interpreter is ending")
        _waiting[self._number] = self
        try:
            call("preempt", "XQueueSubmit", self._queue_handle, self._handle)
        except XSchedError:
            _waiting.pop(self._number, None)
            raise

    def _call(self) -> Result:
        self._launched = True
        try:
            self._launch()
        except BaseException as error:  # it must not get into the C library; wait raises it
            self._error = error
            return Result.ERROR_HARDWARE
        return Result.SUCCESS

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            library("preempt").HwCommandDestroy(self._handle)


def launching_on() -> int:
    """The HwQueue of the command whose function this thread calls; 0: it calls none."""
    return getattr(_of_thread, "hwq", 0)


def _launch(hwq: int, number: int) -> int:
    """What the library calls, for all commands."""
    command = _waiting.get(number)
    if command is None:
        return Result.SUCCESS  # dropped
    _launching.add(command)  # before it is taken out, so that it is always in one of the two
    before, _of_thread.hwq = launching_on(), hwq
    try:
        return command._call() if _waiting.pop(number, None) else Result.SUCCESS
    finally:
        _of_thread.hwq = before
        _launching.discard(command)


_LAUNCH = LAUNCH_CALLBACK(_launch)  # one for all commands: it is never freed, so the library may call it at any time


def drop(queue: int) -> None:
    """The commands that wait in the queue with this handle are not launched any more."""
    for number, command in list(_waiting.items()):
        if command._queue_handle == queue:
            _waiting.pop(number, None)


def _end() -> None:
    """Drops all commands: a function that was called after the end of the interpreter would crash the program. Functions that are running are
    waited for, but not without end."""
    global _ended
    _ended = True
    queues = {command._queue_handle for command in [*list(_waiting.values()), *list(_launching)]}
    _waiting.clear()
    give_up = time.monotonic() + _LONGEST_S
    while _launching and time.monotonic() < give_up:
        time.sleep(0.001)
    for queue in queues - {command._queue_handle for command in list(_launching)}:
        with contextlib.suppress(XSchedError):  # it may be closed
            call("preempt", "XQueueSuspend", queue, 0)  # a queue drops commands only while it is suspended
            call("preempt", "XQueueResume", queue, RESUME_DROP_COMMANDS)


def _forget() -> None:
    _waiting.clear()
    _launching.clear()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)  # the child has none of the queues
