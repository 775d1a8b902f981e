"""Who decides which queue runs."""
from .constants import Policy, Scheduler
from .library import call


def set_scheduler(scheduler, policy=Policy.HIGHEST_PRIORITY_FIRST):
    """Chooses who schedules this process's queues from now on: a Scheduler; for Scheduler.LOCAL, by which Policy.

    Until the first call XSCHED_SCHEDULER and XSCHED_POLICY decide; without them the program holds its queues itself.
    XSchedError: NOT_SUPPORTED: this build does not have the policy; NOT_FOUND (Scheduler.GLOBAL): no server is there now, and
    the process runs unscheduled until one is.
    """
    call("preempt", "XHintSetScheduler", Scheduler(scheduler), Policy(policy))


def set_timeslice(microseconds):
    """The timeslice of policies that have one, for all queues: 100 to 10,000,000 microseconds."""
    call("preempt", "XHintTimeslice", microseconds)
