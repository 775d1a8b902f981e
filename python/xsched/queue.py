"""The preemptible queue over a stream."""
import contextlib
import ctypes

from .constants import (CREATE_BLOCKING_SUBMIT, PRIORITY_DEFAULT, RESUME_DROP_COMMANDS, SUSPEND_SYNC_HW_QUEUE, PreemptLevel,
                        QueueState, Result)
from .library import LAUNCH_CALLBACK, XSchedError, ask, call, handle, library
from .streams import PLATFORMS, platform_of, stream_handle


class Command:
    """What was handed to XSchedQueue.submit."""

    def __init__(self, queue, launch):
        self._queue = queue
        self._launch = launch
        self._error = None
        self._launched = False
        # Kept: the library calls it later.
        self._callback = LAUNCH_CALLBACK(self._call)
        self._handle = handle("preempt", "HwCommandCreateCallback", self._callback, None)

    def _call(self, _hwq, _data):
        try:
            self._launch()
        except BaseException as error:  # it must not get into the C library; wait raises it
            self._error = error
            return Result.ERROR_HARDWARE
        finally:
            self._launched = True
        return Result.SUCCESS

    def wait(self):
        """Returns when what the function put on the stream has finished; raises what the function raised.

        Waits on while the queue is held. XSchedError: NOT_FOUND: it was dropped (XSchedQueue.resume), or the queue is closed.
        """
        call("preempt", "XQueueWait", self._queue.handle, self._handle)
        if self._error is not None:
            raise self._error

    def __del__(self):
        if getattr(self, "_handle", 0):
            library("preempt").HwCommandDestroy(self._handle)


class XSchedQueue:
    """A preemptible queue (XQueue) over a stream, with a priority.

    stream: PyTorch's, CuPy's or PyOpenCL's object; an int or a ctypes pointer; None or 0: the default stream of the current
        device. On HIP it may be of any runtime instance that the process has loaded. It is kept alive until close().
    priority: -255 to 255, bigger is more urgent; -256: never while anything else of the device has work.
    level: the PreemptLevel; XSchedError NOT_SUPPORTED: the platform, or this stream, does not have it. None: BLOCK, or what
        the shim's queue has.
    platform: "cuda", "hip" or "opencl" where it cannot be told from the stream or from what is loaded.
    threshold, batch_size: at most so many commands are in flight while others compete, and so many are let through at a
        time; None: 16 and 8, fewer where commands are long.
    blocking_submit: submit() returns when the command has been launched.

    Under XSched's shim (xsched run) what the program launches on the stream is scheduled, and a stream that the shim has met
    has its queue already: that one is used, with the priority given here. Without a shim, what submit() is given is.

    A context manager: leaving it closes the queue. Safe to use from several threads.
    XSchedError: NOT_FOUND: the platform's runtime is not loaded; INVALID_VALUE: no such stream; HARDWARE: the runtime refused.
    """

    def __init__(self, stream, priority=PRIORITY_DEFAULT, *, level=None, platform=None, threshold=None,
                 batch_size=None, blocking_submit=False):
        platform = platform or platform_of(stream)
        if platform not in PLATFORMS:
            raise ValueError(f"platform: {platform!r} is none of {', '.join(PLATFORMS)}")
        self._stream = stream
        self._commands = []
        self._hwq, self._owns_hwq = _hardware_queue(*PLATFORMS[platform], stream_handle(stream))
        try:
            self._handle, self._owns_queue = _queue(self._hwq, level, blocking_submit)
        except BaseException:
            self._close_hardware_queue()
            raise
        try:
            self.priority = priority
            if threshold is not None or batch_size is not None:
                self.set_launch_config(threshold, batch_size)
        except BaseException:
            self.close()
            raise

    @property
    def handle(self):
        """The XQueueHandle, for calls of the C library. 0: closed."""
        return self._handle

    @property
    def stream(self):
        """What the queue was made for."""
        return self._stream

    @property
    def priority(self):
        """-255 to 255, bigger is more urgent. May be set at any time. XSchedError: INVALID_VALUE."""
        return self._priority

    @priority.setter
    def priority(self, priority):
        call("preempt", "XHintPriority", self._handle, priority)
        self._priority = priority

    def set_utilization(self, percent):
        """The queue's share of the device, 0 to 100 relative to the others' figures, under the policy UP."""
        call("preempt", "XHintUtilization", self._handle, percent)

    def set_deadline(self, microseconds):
        """Its work should be done so long after it became ready; -1: no deadline."""
        call("preempt", "XHintDeadline", self._handle, microseconds)

    def set_laxity(self, microseconds, priority, critical_priority):
        """It may be delayed for so long (-1: no laxity); until then it has `priority`, after that `critical_priority`."""
        call("preempt", "XHintLaxity", self._handle, microseconds, priority, critical_priority)

    def set_level(self, level):
        """Changes the PreemptLevel. XSchedError: NOT_SUPPORTED."""
        call("preempt", "XQueueSetPreemptLevel", self._handle, level)

    def set_launch_config(self, threshold=None, batch_size=None):
        """How many commands may be in flight, and are let through at a time (at most `threshold`); None: as it is."""
        call("preempt", "XQueueSetLaunchConfig", self._handle, threshold or 0, batch_size or 0)

    def suspend(self, wait=False):
        """Holds the queue: nothing more of it starts. wait: returns when what was in flight has finished.

        On HIP a launch on the held stream then waits in the thread that makes it, until resume() of another thread.
        """
        call("preempt", "XQueueSuspend", self._handle, SUSPEND_SYNC_HW_QUEUE if wait else 0)

    def resume(self, drop=False):
        """Lets it go on; a scheduler may still hold it. drop: forgets submitted commands that were not launched."""
        call("preempt", "XQueueResume", self._handle, RESUME_DROP_COMMANDS if drop else 0)

    @contextlib.contextmanager
    def held(self, wait=False):
        """`with queue.held(): …`: suspended within."""
        self.suspend(wait)
        try:
            yield self
        finally:
            self.resume()

    def submit(self, launch):
        """Hands a function over that puts work on the stream; a thread of XSched's calls it when the queue may run.

        Returns a Command. The function is called with no arguments, in the order of submission.
        """
        command = Command(self, launch)
        # Nobody but us may be holding those that the library has yet to call.
        self._commands = [waiting for waiting in self._commands if not waiting._launched] + [command]
        call("preempt", "XQueueSubmit", self._handle, command._handle)
        return command

    def wait(self):
        """Returns when everything that was submitted and, under a shim, launched before the call has finished."""
        call("preempt", "XQueueWaitAll", self._handle)

    @property
    def idle(self):
        """Has everything finished, as far as is known?"""
        return ask(ctypes.c_int, "preempt", "XQueueQuery", self._handle) == QueueState.IDLE

    @property
    def command_count(self):
        """Commands launched on or submitted to the queue since it was made."""
        return ask(ctypes.c_int64, "preempt", "XQueueProfileHwCommandCount", self._handle)

    def close(self):
        """Takes the queue away, unless it is the shim's; what is held runs on. May be called again."""
        if self._handle == 0:
            return
        if self._owns_queue:
            call("preempt", "XQueueDestroy", self._handle)
        self._handle = 0
        self._close_hardware_queue()

    def _close_hardware_queue(self):
        if self._owns_hwq:
            call("preempt", "HwQueueDestroy", self._hwq)
        self._owns_hwq = False

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    def __repr__(self):
        state = "closed" if self._handle == 0 else f"priority {self._priority}"
        return f"<XSchedQueue over {self._stream!r}, {state}>"


def _hardware_queue(name, function, address):
    """A HwQueue of the stream, and whether it was made here."""
    answer = ctypes.c_uint64()
    result = getattr(library(name), function)(ctypes.byref(answer), address)
    if result == Result.ERROR_NOT_ALLOWED:
        return answer.value, False
    if result != Result.SUCCESS:
        raise XSchedError(function, result)
    return answer.value, True


def _queue(hwq, level, blocking_submit):
    """An XQueue over it, and whether it was made here."""
    flags = CREATE_BLOCKING_SUBMIT if blocking_submit else 0
    try:
        return handle("preempt", "XQueueCreate", hwq, level or PreemptLevel.BLOCK, flags), True
    except XSchedError as error:
        if error.result != Result.ERROR_NOT_ALLOWED:
            raise
    # NOT_ALLOWED: it has one, the shim's, or there is no room for another.
    found = handle("preempt", "XQueueGet", hwq)
    if level is not None:
        call("preempt", "XQueueSetPreemptLevel", found, level)
    return found, False
