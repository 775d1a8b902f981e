"""XSched from Python: priorities for the streams of a program.

XSchedQueue(stream, priority) puts a preemptible queue over a CUDA stream, a HIP stream or an OpenCL command queue;
set_scheduler says who decides which queue runs. What the C library refuses is raised as XSchedError.
"""
from .constants import (PRIORITY_DEFAULT, PRIORITY_MAX, PRIORITY_MIN, PRIORITY_NO_EXECUTE, Policy, PreemptLevel, Result,
                        Scheduler)
from .library import XSchedError, library
from .queue import Command, XSchedQueue
from .scheduler import set_scheduler, set_timeslice

__all__ = ["Command", "PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN", "PRIORITY_NO_EXECUTE", "Policy", "PreemptLevel",
           "Result", "Scheduler", "XSchedError", "XSchedQueue", "library", "set_scheduler", "set_timeslice"]
__version__ = "2.0.0"
