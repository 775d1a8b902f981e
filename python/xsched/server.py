"""Asks the server: the queues of all programs that this user may see, and their hints. Uses the program `xsched`."""
import json
import os
import subprocess
from dataclasses import dataclass, fields
from typing import List, Optional

from .constants import Result
from .library import XSchedError
from .programs import find

# What the exit status of `xsched` means.
_RESULTS = {2: Result.ERROR_INVALID_VALUE, 3: Result.ERROR_NOT_FOUND, 4: Result.ERROR_NOT_ALLOWED}
_LONGEST_S = 30  # a server that answers later is taken to have failed


class ServerError(XSchedError):
    """The server refused, or there is none: `result` is NOT_FOUND (no server), NOT_ALLOWED, INVALID_VALUE, BAD_RESPONSE or UNKNOWN."""


@dataclass(frozen=True)
class QueueInfo:
    """One queue, when `queues` was called."""

    queue: int         # its number at the server
    pid: int           # as the server sees it: of a program in a container, the one that it has on the host
    process: str
    user: str
    platform: str
    device: str
    state: str         # idle, run, held, stalled, suspended, stopped, silent or no access
    why: str           # why it does not run; empty: it runs, or has no work
    waits_for: Optional[int]  # the queue because of which it does not run
    priority: int
    utilization: int   # percent
    weight: int
    deadline_us: int   # -1: none
    laxity_us: int     # -1: none
    latency_target_us: int    # 0: none
    floor: int         # percent
    guarantee_us: int
    period_us: int     # 0: no reservation
    limit_us: int      # 0: none
    burst_us: int
    level: int         # what a hold can stop: PreemptLevel
    submitted: int     # commands
    retired: int       # of these, those that are known to have finished
    service_ns: int    # device time received
    waiting_ns: int    # time during which it had work and was held
    holds: int         # how often it was held
    incidents: int     # how often it stalled
    # What its process is in, as the kernel says it. None: in none, as far as is known.
    container: Optional[str] = None  # its id
    pod: Optional[str] = None        # the uid of the Kubernetes pod
    job: Optional[str] = None        # the number of the Slurm job


def _program() -> str:
    found = find("xsched")
    if found is None:
        raise ServerError("xsched", Result.ERROR_NOT_FOUND, "the program xsched is not in PATH: install XSched, or set PATH")
    return found


def _run(*arguments: str) -> str:
    command = [_program(), *arguments]
    # A shim that this process has is for this process: the tool uses no device.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        # Names of processes are any bytes, and the locale may have another encoding.
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
                              timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise ServerError(f"xsched {arguments[0]}", Result.ERROR_UNKNOWN, f"the server has not answered for {_LONGEST_S} s") from None
    except OSError as error:
        raise ServerError(f"xsched {arguments[0]}", Result.ERROR_UNKNOWN, f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        message = done.stderr.strip() or f"xsched {arguments[0]} ended with {done.returncode}"
        raise ServerError(f"xsched {arguments[0]}", _RESULTS.get(done.returncode, Result.ERROR_UNKNOWN), message)
    return done.stdout


def queues(pid: Optional[int] = None) -> List[QueueInfo]:
    """The queues that this user may see, or those of the process `pid` only, in the order of their numbers. Takes milliseconds.
    ServerError: NOT_FOUND: no server answers; BAD_RESPONSE: the program `xsched` is older than this package.

    In a container, `pid` is not what os.getpid() returns, but the number on the host."""
    listed = _run("list", "--json", *([] if pid is None else ["--pid", str(pid)]))
    names = [field.name for field in fields(QueueInfo)]
    try:
        # A member that is missing has its default, if it has one: `xsched` may be a little older.
        return [QueueInfo(**{name: queue[name] for name in names if name in queue}) for queue in json.loads(listed)]
    except (ValueError, TypeError) as error:
        raise ServerError("xsched list", Result.ERROR_BAD_RESPONSE,
                          f"{_program()} does not answer as this package expects: they are of different versions ({error!r})") from error


def hint(pid: Optional[int] = None, *, queue: Optional[int] = None, priority: Optional[int] = None, utilization: Optional[int] = None,
         weight: Optional[int] = None, deadline_us: Optional[int] = None, laxity_us: Optional[int] = None,
         guarantee_us: Optional[int] = None, period_us: Optional[int] = None, limit_us: Optional[int] = None,
         burst_us: Optional[int] = None, latency_target_us: Optional[int] = None, floor: Optional[int] = None) -> None:
    """Sets hints of all queues that the process `pid` has, or of the one with this number. What is None stays as it is.

    Units and ranges are those of `xsched hint`, and what QueueInfo says may be given back. deadline_us, laxity_us: 0 or -1: none.
    latency_target_us, limit_us: 0: none. guarantee_us, period_us, limit_us and burst_us are one hint: of these, None is 0, and with all of
    them 0 there is no reservation. ServerError: NOT_FOUND: no server answers; NOT_ALLOWED: the server's socket is not for
    this user; INVALID_VALUE: out of range; UNKNOWN: this user has no such process or queue, or all guarantees would be more than the device.
    """
    if (pid is None) == (queue is None):
        raise ValueError("hint: give either pid or queue")
    # What means that there is none: for QueueInfo -1, for the command 0.
    deadline_us, laxity_us = (0 if value == -1 else value for value in (deadline_us, laxity_us))
    if period_us == 0:  # the command takes no 0 here: it is what is not given
        period_us, guarantee_us = None, guarantee_us or 0
    wanted = {"priority": priority, "utilization": utilization, "weight": weight, "deadline-us": deadline_us, "laxity-us": laxity_us,
              "guarantee-us": guarantee_us, "period-us": period_us, "limit-us": limit_us, "burst-us": burst_us,
              "latency-target-us": latency_target_us, "floor": floor}
    options = [text for name, value in wanted.items() if value is not None for text in (f"--{name}", str(value))]
    if not options:
        raise ValueError("hint: give a hint")
    _run("hint", *(["--pid", str(pid)] if queue is None else ["--queue", str(queue)]), *options)
