"""XSched from Python: priorities for the streams of a program, and for other programs.

    with xsched.priority(10): …          the streams that are current; xsched.hints: with other hints
    with xsched.stream(priority=10): …   a new stream (xsched.torch, xsched.cupy; for JAX: xsched.jax)
    xsched.queues()                      the queues of all programs that this user may see
    xsched.hint(pid, priority=-5)        hints of another program

XSchedQueue(stream, priority) puts a preemptible queue over a stream or command queue of any platform (xsched.platforms). set_scheduler
chooses the scheduler. Errors of the C library and of the server are raised as XSchedError. A value out of its range raises RangeError,
which is an XSchedError and a ValueError; from xsched.hint, it is a ServerError (INVALID_VALUE). If the C libraries cannot be loaded, that
is an OSError: help(xsched.library) says where they are looked for. The names of XSched 1.2's package are in xsched.compat, and for old
programs here as well.
"""
from .commands import Command
from .constants import (PRIORITY_DEFAULT, PRIORITY_MAX, PRIORITY_MIN, PRIORITY_NO_EXECUTE, Policy, PreemptLevel, Result,
                        Scheduler)
from . import compat as compat, former, jax as jax  # `as`: type checkers then let programs use them
from .current import stream
from .former import *  # noqa: F401,F403
from .hint_blocks import HintBlock, hints, priority
from .library import XSchedError, library
from .queue import XSchedQueue
from .ranges import RangeError
from .scheduler import set_k_deadline, set_scheduler, set_timeslice
from .server import QueueInfo, ServerError, hint, queues

__all__ = ["Command", "HintBlock", "PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN", "PRIORITY_NO_EXECUTE", "Policy", "PreemptLevel",
           "QueueInfo", "RangeError", "Result", "Scheduler", "ServerError", "XSchedError", "XSchedQueue", "hint", "hints", "library", "priority",
           "queues", "set_k_deadline", "set_scheduler", "set_timeslice", "stream",
           *former.__all__]
__version__ = "2.0.0"
