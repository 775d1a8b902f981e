"""The preemptible queue over a stream."""
import contextlib
import ctypes
import os
import threading
import time
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Tuple

from . import holds
from .commands import Command, drop as drop_commands, launching_on
from .constants import CREATE_BLOCKING_SUBMIT, PreemptLevel, QueueState, Result
from .cuda_contexts import on_device
from .hint_blocks import set_hint
from .library import XSchedError, ask, call, handle, has_shim, read_hint, unless_gone
from .ranges import RangeError, in_range
from .streams import STREAM_PLATFORMS, check_platform, device_of, frameworks_device, is_default_stream, lasts, platform_of, stream_handle

_MOST_COMMANDS = 2**63 - 1  # what the C library's type holds
_MOST_QUEUES = 1024  # of a process
_LONGEST_CLOSE_S = 10  # to destroy a queue, the C library takes five seconds at most, and as long as a function of submit() runs


class _Made:
    """A queue that was made here, and not by a shim or the program's C code."""

    def __init__(self, stream: Any, hwq: int, with_hwq: bool) -> None:
        self.stream = stream      # kept, because a queue's work goes on if the program drops the XSchedQueue
        self.hwq = hwq            # the hardware queue
        self.with_hwq = with_hwq  # it was made here as well
        self.users = 0            # XSchedQueues over it that are not closed


_made: Dict[int, _Made] = {}  # by the queues' handles
_inherited: List[_Made] = []  # of the process that has forked this one: kept, because their streams are not this one's to destroy
_closing: Dict[int, threading.Event] = {}  # the hardware queues whose queues are being destroyed: set when they are gone
_made_lock = threading.RLock()  # of both; not held while a queue is destroyed, because that waits for the program's functions


def _begin_process() -> None:
    """A child of fork has none of the queues, and none of the parent's other threads: one may have held the lock, and others were destroying
    queues."""
    global _made_lock
    _made_lock = threading.RLock()
    _inherited.extend(_made.values())
    _made.clear()
    _closing.clear()


os.register_at_fork(after_in_child=_begin_process)


class XSchedQueue:
    """A preemptible queue (XQueue) over a stream, with a priority.

    stream: an object of PyTorch, CuPy or PyOpenCL; an int or a ctypes pointer; None or 0: the default stream of the current device. It
        may belong to any runtime instance that the process has loaded. It is kept alive until close().
    priority: -255 to 255, bigger is more urgent; -256: never while any other queue of the device has work. None: what the queue has
        already, or what `xsched run` says, otherwise 0.
    level: the PreemptLevel, or the best one below it that the platform has for this stream. None: what the queue has already, or what
        `xsched run` says, otherwise the best.
    platform: its name (xsched.platforms), if neither the stream nor the loaded libraries show it.
    threshold, batch_size: the largest number of commands in flight while others compete, and of commands that are let through at a time;
        None: 16 and 8, fewer if commands are long. A batch_size that is not given is at most `threshold`.
    blocking_submit: submit() returns after the command has been launched. A queue that is made so has level BLOCK and no hints, unless
        they are given here.

    Under XSched's shim (xsched run), the program's own launches on the stream are scheduled. A stream that the shim has discovered already
    has a queue: this one is used. Several XSchedQueues over one stream are one queue, which the last of them to be closed destroys. One
    that is made meanwhile waits for that, and is a new queue. Without a shim, only commands of submit() are scheduled.

    A context manager: leaving it closes the queue. Safe to use from several threads. A child of fork has none of its parent's queues, and may
    leave the block of one.
    RangeError (an XSchedError and a ValueError): a value is out of its range; nothing changes.
    XSchedError: NOT_FOUND: the platform's runtime is not loaded; INVALID_VALUE: no such stream, or batch_size is above the threshold;
        HARDWARE: the runtime refused, or the thread has no CUDA context that says whose default stream is meant.
    OSError: XSched's C libraries cannot be loaded (help(xsched.library)).
    """

    def __init__(self, stream: Any, priority: Optional[int] = None, *, level: Optional[PreemptLevel] = None, platform: Optional[str] = None,
                 threshold: Optional[int] = None, batch_size: Optional[int] = None, blocking_submit: bool = False) -> None:
        if level is not None:
            level = PreemptLevel(level)
        check_platform(platform)
        platform = platform or platform_of(stream)
        self._stream = stream
        self._handle = _begin_use(platform, stream, level, blocking_submit)
        self._unclosed = [self._handle]
        try:
            if priority is not None:
                self.priority = priority
            if threshold is not None or batch_size is not None:
                self.set_launch_config(threshold, batch_size)
        except BaseException:
            self.close()
            raise

    @property
    def handle(self) -> int:
        """The XQueueHandle, for calls of the C library. 0: closed."""
        return self._handle

    @property
    def stream(self) -> Any:
        """The stream for which the queue was made."""
        return self._stream

    @property
    def priority(self) -> int:
        """What the queue has now: -255 to 255, bigger is more urgent. May be set at any time."""
        return read_hint("Priority", self._handle)[0]

    @priority.setter
    def priority(self, priority: int) -> None:
        set_hint(self._handle, "priority", priority)

    def set_utilization(self, percent: int) -> None:
        """The queue's share of the device, 0 to 100 relative to the others' figures, under the policy UP."""
        set_hint(self._handle, "utilization", percent)

    def set_weight(self, weight: int) -> None:
        """The queue's share, and its process's among other processes: 1 to 10,000, in proportion to the others' weights (100 unless set),
        under the policy EEVDF."""
        set_hint(self._handle, "weight", weight)

    def set_reservation(self, guarantee: int, period: int, limit: int = 0, burst: int = 0) -> None:
        """In each period, the queue gets `guarantee` and at most `limit` (0: no limit) of the device's time, under the policy RESERVE.
        `burst` of an unused limit may be used later. Microseconds; the period: 1,000 to 1,000,000. All 0: no reservation. Values that
        contradict each other raise RangeError. A guarantee that the device cannot keep is refused later, with a warning in the log.
        """
        set_hint(self._handle, "reservation", guarantee, period, limit, burst)

    def set_latency_target(self, microseconds: int) -> None:
        """99 of 100 requests should take no longer, from when they came until they have ended, under the policy SLO; 0: no target."""
        set_hint(self._handle, "latency_target", microseconds)

    def set_floor(self, percent: int) -> None:
        """While this queue has work and no latency target, those without one get so much of the device together at least, under the policy
        SLO: 1 to 99 (5 unless set)."""
        set_hint(self._handle, "floor", percent)

    def set_deadline(self, microseconds: int) -> None:
        """Its work should be finished within this time after it became ready; -1: no deadline."""
        set_hint(self._handle, "deadline", microseconds)

    def set_laxity(self, microseconds: int, priority: int, critical_priority: int) -> None:
        """It may be delayed for this time (-1: no laxity). Until then it has `priority`, and after that `critical_priority`."""
        set_hint(self._handle, "laxity", microseconds, priority, critical_priority)

    def set_level(self, level: PreemptLevel) -> None:
        """Changes the PreemptLevel, to the best one that the stream has up to this."""
        call("preempt", "XQueueSetPreemptLevel", self._handle, PreemptLevel(level))

    def set_launch_config(self, threshold: Optional[int] = None, batch_size: Optional[int] = None) -> None:
        """How many commands may be in flight, and how many are let through at a time; None: unchanged. A batch_size that is not given shrinks to
        `threshold`. RangeError: batch_size is above `threshold`; XSchedError, INVALID_VALUE: above the one that the queue has. Then nothing
        changes.
        """
        numbers = [0 if number is None else in_range("XQueueSetLaunchConfig", name, number, 1, _MOST_COMMANDS)
                   for name, number in (("threshold", threshold), ("batch_size", batch_size))]
        if threshold is not None and batch_size is not None and batch_size > threshold:
            raise RangeError("XQueueSetLaunchConfig", f"batch_size: {batch_size} is above the threshold of {threshold}")
        try:
            call("preempt", "XQueueSetLaunchConfig", self._handle, *numbers)
        except XSchedError as error:
            # The queue's batch_size is above the new threshold: there is nothing else that the library could refuse.
            if batch_size is not None or error.result != Result.ERROR_INVALID_VALUE:
                raise
            call("preempt", "XQueueSetLaunchConfig", self._handle, numbers[0], numbers[0])

    def suspend(self, wait: bool = False) -> None:
        """Suspends the queue: nothing more of it starts. wait: returns when the commands in flight have finished.

        On a platform without gates, a launch on the held stream then waits in the launching thread, until another thread resumes.
        XSchedError: NOT_ALLOWED: the caller is a function of submit(), whose end it would wait for.
        """
        holds.suspend(self._handle, wait)

    def resume(self, drop: bool = False) -> None:
        """Resumes the queue, also inside `held` blocks. A scheduler may still hold it. drop: drops submitted commands that were not
        launched."""
        if drop:
            drop_commands(self._handle)  # the library drops those of a suspended queue only
        holds.resume(self._handle, drop)

    @contextlib.contextmanager
    def held(self, wait: bool = False) -> Iterator["XSchedQueue"]:
        """`with queue.held(): …`: the queue is suspended in the block, and stays so until the last of the blocks that hold it ends, whichever
        thread they are in, or as long as it was suspended before. The block may close the queue."""
        with holds.held(self._handle, wait):
            yield self

    def submit(self, launch: Callable[[], object]) -> Command:
        """Submits a function that puts work on the stream. A thread of XSched calls it when the queue may run.

        Returns a Command. The function is called with no arguments, in the order of submission, even if the program keeps neither the Command
        nor the queue. At the end of the program, what has not been launched is dropped: wait() for it.
        RuntimeError: the interpreter is ending.
        """
        command = Command(self, launch)
        command._submit()
        return command

    def wait(self) -> None:
        """Waits until everything that was submitted (and, under a shim, launched) before this call has finished.

        Ctrl-C takes effect when the wait is over."""
        call("preempt", "XQueueWaitAll", self._handle)

    @property
    def idle(self) -> bool:
        """True if everything has finished, as far as is known."""
        return ask(ctypes.c_int, "preempt", "XQueueQuery", self._handle) == QueueState.IDLE

    @property
    def command_count(self) -> int:
        """Commands launched on or submitted to the queue since it was made."""
        return ask(ctypes.c_int64, "preempt", "XQueueProfileHwCommandCount", self._handle)

    def close(self) -> None:
        """Destroys the queue, unless it is the shim's, or another XSchedQueue over the stream is not closed. Held commands then run. May be
        called repeatedly, by any thread: the first call destroys it, and after an error the next one."""
        # No lock: destroying waits for the program's functions, which may close it as well.
        try:
            closed = self._unclosed.pop()
        except IndexError:
            return
        self._handle = 0
        try:
            _end_use(closed)
        except BaseException:
            self._unclosed.append(closed)
            raise

    def __enter__(self) -> "XSchedQueue":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed"
        if self._handle != 0:
            with unless_gone():
                state = f"priority {self.priority}"
        return f"<XSchedQueue over {self._stream!r}, {state}>"


def queue_over(stream: Any, platform: Optional[str] = None) -> Optional[int]:
    """The XQueueHandle of the stream's queue, which is made as the shim makes it if there is none. It exists until the program destroys the
    stream. None: it has none, and none may be made, because without a shim nobody would see that the stream is destroyed."""
    platform, address = platform or platform_of(stream), stream_handle(stream)
    if not lasts(stream, address) and not has_shim(platform):
        with unless_gone():
            return handle("preempt", "XQueueGet", _found(platform, address))
        return None
    with _kept_hardware_queue(platform, stream) as (hwq, _):
        return handle("preempt", "XQueueCreateAuto", hwq)


def own_queues() -> List[int]:
    """The XQueueHandles of all queues of this process."""
    handles = (ctypes.c_uint64 * _MOST_QUEUES)()
    count = ask(ctypes.c_size_t, "preempt", "XQueueList", handles, _MOST_QUEUES)
    return handles[:count]


def _begin_use(platform: str, stream: Any, level: Optional[PreemptLevel], blocking_submit: bool) -> int:
    """The XQueueHandle of the stream's queue, for one XSchedQueue more."""
    with _kept_hardware_queue(platform, stream) as (hwq, makes_hwq):
        try:
            queue, makes_queue = _queue(hwq, level, blocking_submit)
        except BaseException:
            if makes_hwq:
                call("preempt", "HwQueueDestroy", hwq)
            raise
        if makes_queue:
            _made[queue] = _Made(stream, hwq, makes_hwq)
        if queue in _made:
            _made[queue].users += 1
        return queue


def _end_use(queue: int) -> None:
    """Destroys the queue, if it was made here and nobody uses it any more."""
    with _made_lock:
        made = _made.get(queue)
        if made is None:
            return
        made.users -= 1
        if made.users > 0:
            return
        gone = _closing[made.hwq] = threading.Event()
    try:
        with unless_gone():
            call("preempt", "XQueueDestroy", queue)
        if made.with_hwq:
            with unless_gone():
                call("preempt", "HwQueueDestroy", made.hwq)
        holds.forget(queue)
        _made.pop(queue, None)
    except BaseException:
        with _made_lock:
            made.users += 1  # a later close() tries again
        raise
    finally:
        with _made_lock:
            _closing.pop(made.hwq, None)
        gone.set()


@contextlib.contextmanager
def _kept_hardware_queue(platform: str, stream: Any) -> Iterator[Tuple[int, bool]]:
    """A block with the stream's HwQueue, and whether it was made here. In the block, no other thread destroys its queue.

    If one is destroying it already, the block begins after that: that queue cannot be used again.
    """
    address = stream_handle(stream)
    give_up = time.monotonic() + _LONGEST_CLOSE_S
    while True:
        with _made_lock, _device_of(platform, stream, address):
            hwq, is_made = _hardware_queue(platform, address)
            gone = _closing.get(hwq)
            if gone is None:
                yield hwq, is_made
                return
        # The close waits for the functions of submit(). And not without end: a handler of a signal may have interrupted it.
        longest = 0 if launching_on() == hwq else max(0, give_up - time.monotonic())
        if not gone.wait(longest):
            raise XSchedError("XQueueCreate", Result.ERROR_NOT_ALLOWED, "XQueueCreate: not allowed: the stream's last queue is being closed")


def _device_of(platform: str, stream: Any, address: int) -> ContextManager[Any]:
    """A block in which a default stream is that of its own device. All other streams have handles of their own."""
    if not is_default_stream(address):
        return contextlib.nullcontext()
    return on_device(device_of(stream)) if platform == "cuda" else frameworks_device(stream)


def _found(platform: str, address: int) -> int:
    """The stream's HwQueue. XSchedError: NOT_FOUND: it has none."""
    return handle(f"hal{platform}", STREAM_PLATFORMS[platform].GET, address)


def _hardware_queue(platform: str, address: int) -> Tuple[int, bool]:
    """The stream's HwQueue, and whether it was made here."""
    with unless_gone():
        return _found(platform, address), False
    return handle(f"hal{platform}", STREAM_PLATFORMS[platform].CREATE, address), True


def _queue(hwq: int, level: Optional[PreemptLevel], blocking_submit: bool) -> Tuple[int, bool]:
    """Its XQueue, and whether it was made here."""
    is_made = False
    try:
        found = handle("preempt", "XQueueGet", hwq)
    except XSchedError as error:
        if error.result != Result.ERROR_NOT_FOUND:
            raise
        if blocking_submit:
            return handle("preempt", "XQueueCreate", hwq, level or PreemptLevel.BLOCK, CREATE_BLOCKING_SUBMIT), True
        found, is_made = handle("preempt", "XQueueCreateAuto", hwq), True
    if is_made and level is None:
        level = PreemptLevel(ask(ctypes.c_int, "preempt", "XQueueGetPreemptLevel", found))
    if level is not None:
        # Also the one that it has: the C library then prepares what is launched from now on for being suspended.
        call("preempt", "XQueueSetPreemptLevel", found, level)
    return found, is_made
