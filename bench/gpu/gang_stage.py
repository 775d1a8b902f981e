"""Figure 12: distributed programs on several GPUs. Each one's ranks wait for each other, so a turn on one GPU alone is worth nothing."""
import contextlib
import itertools
import random
import socket
import time

from figures import rate, summary
from kernel_stages import HIGH, LOW, TASK
from measure import LEAD, Clock, left_by, p99
from session import Skipped
from torch_stages import STARTING

RANKS = 2
JOB = {"size": 4096, "layers": 8, "gradients_mb": 64}
APART = 0.1  # seconds by which the second job's ranks come one after the other


def free_port():
    """None that the system gives to others before the job's first rank listens: it takes those from 32768 on."""
    while True:
        with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
            port = random.randrange(20000, 32768)
            probe.bind(("", port))
            return port


def job_of(session, scheduled, known):
    """The ranks of one job. `known`: by torchrun's variables, otherwise by NCCL alone."""
    port = free_port()
    ranks = []
    for rank in range(RANKS):
        session.extra_environment = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS),
                                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        options = LOW if known else (*LOW, "--gang", f"of rank {rank} of {port}")
        ranks.append(session.torch(*(options if scheduled else ()), jobs=[JOB], scheduled=scheduled))
    session.extra_environment = {}
    return ranks


def begin(jobs):
    for rank in jobs[0]:
        rank.send(do="continuous", job=JOB)
    for later in jobs[1:]:
        for rank in later:
            time.sleep(APART)
            rank.send(do="continuous", job=JOB)


def end(jobs):
    """The progress of each job: that of its first rank."""
    for rank in itertools.chain(*jobs):
        rank.send(do="stop")
    return [[rank.stopped()["progress"] for rank in ranks][0] for ranks in jobs]


def steps_per_second(session, jobs, urgent=None):
    """(of each job, the urgent task's latencies)"""
    begin(jobs)
    time.sleep(LEAD)
    since = time.monotonic()
    latencies = []
    if urgent is None:
        time.sleep(session.seconds)
    else:
        latencies = urgent.ask(do="task", **TASK, seconds=session.seconds)["latency_ms"]
    until = time.monotonic()
    return [rate(progress, since, until) for progress in end(jobs)], latencies


def gangs(session):
    """Two jobs of two ranks, whose ranks come 100 ms apart, and an urgent program on the first GPU."""
    if session.report.machine["GPUs"] < RANKS:
        session.report.note("12", "gangs", f"skipped: needs {RANKS} GPUs")
        return
    for known in (True, False):
        case = f"two jobs of two ranks (known by {'their launcher' if known else 'NCCL alone'}), 5 × 200 µs at 50 Hz on one GPU"
        with session.step("12", case, 2 * STARTING + 8 * (session.seconds + LEAD)), session.server():
            native, ours = ([job_of(session, scheduled, known) for _ in range(2)] for scheduled in (False, True))
            urgent = [session.kernels(), session.kernels(*HIGH, scheduled=True)]
            session.ready(*native, *ours, urgent)
            with Clock() as clock_alone:
                alone_ms = urgent[0].ask(do="task", **TASK, seconds=session.seconds)["latency_ms"]
            (alone,), _ = steps_per_second(session, native[:1])
            left = left_by(alone_ms, TASK["rate_hz"])
            theirs, native_ms = steps_per_second(session, native, urgent[0])
            with Clock() as clock:
                mine, our_ms = steps_per_second(session, ours, urgent[1])
            details = {"alone": alone, "native": theirs, "xsched": mine, "left": left, "mhz": [clock_alone.mhz, clock.mhz]}
            session.report.add("12", case, "p99 : alone", p99(our_ms) / p99(alone_ms), (None, 1.25), alone=summary(alone_ms),
                               native=summary(native_ms), xsched=summary(our_ms), details=details)
            if clock.mhz and clock_alone.mhz:
                session.report.add("12", case, "p99 : alone at the same clock", p99(our_ms) / p99(alone_ms) * clock.mhz / clock_alone.mhz,
                                   (None, 1.25), details=details)
            session.report.add("12", case, "both jobs keep", sum(mine) / (alone * left), (0.9, None), native=sum(theirs) / (alone * left),
                               xsched=sum(mine) / (alone * left), details=details)
            session.report.add("12", case, "the smaller job's part", min(mine) / sum(mine), (0.45, None),
                               native=min(theirs) / sum(theirs), xsched=min(mine) / sum(mine), details=details)


STAGES = {"gangs": gangs}
