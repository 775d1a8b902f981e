"""The constants of xsched/types.h."""
import enum

PRIORITY_NO_EXECUTE = -256  # never runs while any other queue of its device is ready
PRIORITY_MIN = -255
PRIORITY_DEFAULT = 0
PRIORITY_MAX = 255

# Microseconds.
TIMESLICE_MIN, TIMESLICE_MAX = 100, 10_000_000
DEADLINE_MAX = 31_556_952_000_000  # a year; also of a laxity
RESERVATION_PERIOD_MIN, RESERVATION_PERIOD_MAX = 1000, 1_000_000


class Result(enum.IntEnum):
    """XResult: the result of a call of the C library."""

    SUCCESS = 0
    ERROR_HARDWARE = 1
    ERROR_INVALID_VALUE = 2
    ERROR_NOT_FOUND = 3
    ERROR_NOT_ALLOWED = 4
    ERROR_NOT_SUPPORTED = 5
    ERROR_BAD_RESPONSE = 6
    ERROR_UNKNOWN = 999


class PreemptLevel(enum.IntEnum):
    """XPreemptLevel: what a hold of the queue stops."""

    BLOCK = 1       # commands that were not launched yet
    DEACTIVATE = 2  # also launched commands that have not started
    INTERRUPT = 3   # also the running command, which later goes on where it stopped


class Scheduler(enum.IntEnum):
    """XSchedulerType: which scheduler decides which queues run."""

    APP_MANAGED = 1  # the program: suspend and resume
    LOCAL = 2        # a policy, for the queues of this process
    GLOBAL = 3       # xserver, for all processes


class Policy(enum.IntEnum):
    """XPolicyType: the policy. A build has only some of these; for the others, the C library returns an error."""

    HIGHEST_PRIORITY_FIRST = 1
    HETEROGENEOUS_HIGHEST_PRIORITY_FIRST = 2
    CPU_HIGHEST_PRIORITY_FIRST = 3
    UTILIZATION_PARTITION = 4
    PROCESS_UTILIZATION_PARTITION = 5
    STRICT_PROCESS_UTILIZATION_PARTITION = 6
    K_EARLIEST_DEADLINE_FIRST = 7
    LAXITY = 8
    ACTIVE_WINDOW_FIRST = 9
    COMPLETELY_FAIR_SCHEDULER = 10
    MULTI_LEVEL_FEEDBACK_QUEUE = 11
    EARLIEST_ELIGIBLE_VIRTUAL_DEADLINE_FIRST = 12  # not in XSched 1.2
    RESERVATION = 13  # likewise
    SERVICE_LEVEL_OBJECTIVE = 14  # likewise


class QueueState(enum.IntEnum):
    """XQueueState."""

    IDLE = 1   # everything submitted has finished
    READY = 2  # there is unfinished work


SUSPEND_SYNC_HW_QUEUE = 0x1
CREATE_BLOCKING_SUBMIT = 0x1
RESUME_DROP_COMMANDS = 0x1
