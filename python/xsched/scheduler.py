"""Chooses the scheduler."""
from .constants import TIMESLICE_MAX, TIMESLICE_MIN, Policy, Scheduler
from .library import call
from .ranges import in_range


def set_scheduler(scheduler: Scheduler, policy: Policy = Policy.HIGHEST_PRIORITY_FIRST) -> None:
    """Chooses the Scheduler of this process's queues from now on, and for Scheduler.LOCAL its Policy.

    Until the first call, XSCHED_SCHEDULER and XSCHED_POLICY decide. Without them, the program schedules its queues itself.
    XSchedError: NOT_SUPPORTED: this build does not have the policy; NOT_FOUND (Scheduler.GLOBAL): there is no server now, and the process
    runs unscheduled until there is one. OSError: XSched's C libraries cannot be loaded.
    """
    call("preempt", "XHintSetScheduler", Scheduler(scheduler), Policy(policy))


def set_timeslice(microseconds: int) -> None:
    """The timeslice of policies that have one, for all queues: 100 to 10,000,000 microseconds. RangeError: it is none of these."""
    call("preempt", "XHintTimeslice", in_range("XHintTimeslice", "timeslice", microseconds, TIMESLICE_MIN, TIMESLICE_MAX))


def set_k_deadline(queues: int) -> None:
    """How many queues policy KEDF runs at a time: 1 to 64. RangeError: it is none of these."""
    call("preempt", "XHintKDeadline", in_range("XHintKDeadline", "queues", queues, 1, 64))
