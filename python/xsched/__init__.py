"""XSched from Python: priorities for the streams of a program.

XSchedQueue(stream, priority) puts a preemptible queue over a stream or command queue of any platform (xsched.platforms).
set_scheduler chooses the scheduler. Errors of the C library are raised as XSchedError. The names of XSched 1.2's package are there
as well (xsched.former).
"""
from .constants import (PRIORITY_DEFAULT, PRIORITY_MAX, PRIORITY_MIN, PRIORITY_NO_EXECUTE, Policy, PreemptLevel, Result,
                        Scheduler)
from . import former
from .former import *  # noqa: F401,F403
from .library import XSchedError, library
from .queue import Command, XSchedQueue
from .scheduler import set_k_deadline, set_scheduler, set_timeslice

__all__ = ["Command", "PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN", "PRIORITY_NO_EXECUTE", "Policy", "PreemptLevel",
           "Result", "Scheduler", "XSchedError", "XSchedQueue", "library", "set_k_deadline", "set_scheduler",
           "set_timeslice",
           *former.__all__]
__version__ = "2.0.0"
