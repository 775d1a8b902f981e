"""Suspends queues for their programs, and resumes them: by calls, and for blocks that may nest and overlap."""
import contextlib
import os
import threading
from typing import Dict, Iterator

from .constants import RESUME_DROP_COMMANDS, SUSPEND_SYNC_HW_QUEUE
from .library import XSchedError, call, unless_gone


class _Holds:
    """Why a queue is suspended. It is resumed when neither is left."""

    def __init__(self) -> None:
        self.suspended = False  # by `suspend`
        self.blocks = 0         # `held` blocks that have begun and not ended


_holds: Dict[int, _Holds] = {}  # of queues with one, by their handles, which are never used again
_lock = threading.RLock()  # while a thread has it, the garbage collector may end a generator that is inside a block


def _begin_process() -> None:
    """A child of fork has none of the queues, and not the thread of the parent that may have held the lock."""
    global _lock
    _lock = threading.RLock()
    _holds.clear()


os.register_at_fork(after_in_child=_begin_process)


def _suspend(queue: int, wait: bool) -> None:
    call("preempt", "XQueueSuspend", queue, SUSPEND_SYNC_HW_QUEUE if wait else 0)


def _forget_unless_held(queue: int, found: _Holds) -> bool:
    """True: nothing holds it any more."""
    if found.suspended or found.blocks > 0:
        return False
    _holds.pop(queue, None)
    return True


def suspend(queue: int, wait: bool) -> None:
    """Until `resume`."""
    with _lock:
        found = _holds.setdefault(queue, _Holds())
        before, found.suspended = found.suspended, True
    try:
        _suspend(queue, wait)  # without the lock: see `held`
    except XSchedError:
        with _lock:
            found.suspended = before
            _forget_unless_held(queue, found)
        raise


def resume(queue: int, drop: bool) -> None:
    """At once, whatever blocks there are."""
    with _lock:
        found = _holds.get(queue)
        if found is not None:
            found.suspended = False
            _forget_unless_held(queue, found)
        call("preempt", "XQueueResume", queue, RESUME_DROP_COMMANDS if drop else 0)


@contextlib.contextmanager
def held(queue: int, wait: bool) -> Iterator[None]:
    """A block in which the queue is suspended."""
    with _lock:
        _holds.setdefault(queue, _Holds()).blocks += 1
    try:
        # Without the lock, because it may wait for a function of the program. Nobody resumes meanwhile, because the block counts already.
        _suspend(queue, wait)
        yield
    finally:
        _end_block(queue)


def _end_block(queue: int) -> None:
    with _lock:
        found = _holds.get(queue)
        if found is None:
            return  # the queue was closed in the block, or it is the parent process's
        found.blocks -= 1
        if _forget_unless_held(queue, found):
            with unless_gone():
                call("preempt", "XQueueResume", queue, 0)


def forget(queue: int) -> None:
    """The queue is destroyed."""
    with _lock:
        _holds.pop(queue, None)
