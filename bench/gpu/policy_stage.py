"""Figure 9: every policy on real networks. Programs start once; policies and hints change while they run, as `xsched policy set` and
`xsched hint` do it. Shares: two trainings of ResNet-50. Targets: BERT-base at 20 Hz beside these two."""
import contextlib
import statistics
import subprocess
import time

from figures import percentile, rate
from measure import LEAD, left_by
from torch_stages import STARTING
from worker import WorkerError

FIGURE = "9"
LOW_JOB = {"model": "resnet50", "batch": 64, "train": True}
HIGH_JOB = {"model": "bert", "batch": 8, "graph": True}
HIGH_HZ = 20
REQUESTS = 200  # at least, because p99 of fewer is the latest one of them
NO_HINTS = ("--priority", 0, "--utilization", 0, "--weight", 100, "--guarantee-us", 0, "--latency-target-us", 0)
# (policy, the options of `xsched hint` for each, the first one's share in percent)
SHARES = (
    ("CFS", (("--priority", 5), ("--priority", 0)), 100 * 1.2**5 / (1.2**5 + 1)),
    ("PUP", (("--utilization", 75), ("--utilization", 25)), 75),
    ("UP", (("--utilization", 60), ("--utilization", 40)), 60),
    ("EEVDF", (("--weight", 300), ("--weight", 100)), 75),
    ("RESERVE", (("--guarantee-us", 300000, "--period-us", 500000), ()), 80),
    ("RESERVE", (("--limit-us", 60000, "--period-us", 200000), ()), 30),
    ("MLFQ", ((), ()), 50),
)
MORE_THAN_ALONE_MS = 1
# (policy, the options of `xsched hint` for the task, the goal for its p99: in ms, or ALONE: MORE_THAN_ALONE_MS; None: no promise)
ALONE = "alone"
TASKS = (
    ("HPF", ("--priority", 10), ALONE),
    ("HHPF", ("--priority", 10), ALONE),
    ("LAX", ("--priority", 10, "--laxity-us", 1000), None),
    ("KEDF", ("--deadline-us", 8000), 8),
    ("SLO", ("--latency-target-us", 8000), 8),
    ("SLO", ("--latency-target-us", 20000), 20),
    ("RESERVE", ("--guarantee-us", 5000, "--period-us", 50000), None),
    ("CFS", ("--priority", 20), None),
    ("EEVDF", ("--weight", 10000), None),
    ("PUP", ("--utilization", 90), None),
    ("HPF/EEVDF:process", ("--priority", 10), ALONE),
)
# SLO knows a queue after 200 requests.
LEARNS = {"SLO": 200}
# If a request takes so many times as long as the median one, what the server remembers is kept, to find out why.
LATE = 5


class Tools:
    """`xsched`, connected to the session's server."""

    def __init__(self, session):
        self.session = session

    def __call__(self, *arguments):
        done = subprocess.run([str(self.session.binaries / "xsched"), *map(str, arguments)], env=self.session.environment(True),
                              capture_output=True, text=True, timeout=10, check=False)
        if done.returncode != 0:
            raise WorkerError(f"xsched {arguments}: {done.stderr.strip()}")

    def keep_if_late(self, case, latencies, seconds):
        """Writes a recording beside the results."""
        if max(latencies) > LATE * statistics.median(latencies):
            name = "".join(letter if letter.isalnum() else "-" for letter in case)
            self("record", "--last", seconds, "--output", self.session.report.path.parent / f"late-{name}.xrec")

    def hint(self, worker, *options):
        if options:
            self("hint", "--pid", worker.pid, *options)


@contextlib.contextmanager
def continuously(workers):
    """They work during the block. Yields a list that has their progress after it."""
    progresses = []
    for worker in workers:
        worker.send(do="continuous", job=LOW_JOB)
    try:
        yield progresses
    finally:
        for worker in workers:
            worker.send(do="stop")
        progresses += [worker.stopped()["progress"] for worker in workers]


def both(workers, seconds, prepare=lambda: None):
    """Samples per second of each, while both work. `prepare` is called once they do."""
    with continuously(workers) as progresses:
        time.sleep(LEAD / 2)
        prepare()
        time.sleep(LEAD / 2 + seconds)
    end = min(progress[-1][0] for progress in progresses)
    return [rate(progress, end - seconds, end) for progress in progresses]


def task_beside(worker, lows, seconds):
    """(latencies in ms, samples per second of all others in that time)"""
    with continuously(lows) as progresses:
        time.sleep(LEAD)
        answer = worker.ask(do="task", job=HIGH_JOB, rate_hz=HIGH_HZ, seconds=seconds)
    return answer["latency_ms"], sum(rate(progress, answer["begin"], answer["end"]) for progress in progresses)


def policies(session):
    seconds = max(session.seconds / 2, REQUESTS / HIGH_HZ)
    limit = 3 * STARTING + (len(SHARES) + len(TASKS) + 6) * (seconds + 2 * LEAD) * 1.5 + 60
    with session.step(FIGURE, "policies", limit), session.server():
        native = [session.torch(jobs=[LOW_JOB]) for _ in range(2)] + [session.torch(jobs=[HIGH_JOB])]
        ours = [session.torch(jobs=[LOW_JOB], scheduled=True) for _ in range(2)] + [session.torch(jobs=[HIGH_JOB], scheduled=True)]
        session.ready(native, ours)
        tool = Tools(session)
        alone_ms = native[2].ask(do="task", job=HIGH_JOB, rate_hz=HIGH_HZ, seconds=seconds)["latency_ms"]
        native_both = sum(both(native[:2], seconds))
        native_ms, native_rest = task_beside(native[2], native[:2], seconds)
        shares(session, tool, ours, native_both, seconds)
        targets(session, tool, ours, (alone_ms, native_ms, native_rest, native_both), seconds)


def shares(session, tool, ours, native_both, seconds):
    for policy, hints, percent in SHARES:
        case = f"{policy}: {' and '.join(' '.join(map(str, options)) or 'no hint' for options in hints)}"

        def prepare(policy=policy, hints=hints):
            tool("policy", "set", policy)
            for worker, options in zip(ours, hints):
                tool.hint(worker, *NO_HINTS)
                tool.hint(worker, *options)

        try:
            first, second = both(ours[:2], seconds, prepare)
        except (WorkerError, ValueError) as error:
            session.report.note(FIGURE, case, f"failed: {error}")
            continue
        share = 100 * first / (first + second)
        session.report.add(FIGURE, case, "% of the first", share, (percent - 1, percent + 1), xsched=share)
        session.report.add(FIGURE, case, "total : native", (first + second) / native_both, (0.98, None), native=native_both,
                           xsched=first + second)


def targets(session, tool, ours, natively, seconds):
    alone_ms, native_ms, native_rest, native_both = natively
    left = native_both * left_by(alone_ms, HIGH_HZ)
    session.report.add(FIGURE, "BERT at 20 Hz, natively", "p99 ms", percentile(native_ms, 0.99), alone=percentile(alone_ms, 0.99),
                       native=percentile(native_ms, 0.99))
    for policy, options, at_most in TASKS:
        case = f"BERT at 20 Hz, {policy} {' '.join(map(str, options))}"
        try:
            tool("policy", "set", policy)
            for worker in ours:
                tool.hint(worker, *NO_HINTS)
            tool.hint(ours[2], *options)
            if policy in LEARNS:
                task_beside(ours[2], ours[:2], LEARNS[policy] / HIGH_HZ)
            latencies, rest = task_beside(ours[2], ours[:2], seconds)
            tool.keep_if_late(f"{policy} {options[0]} {options[1]}", latencies, seconds + LEAD)
        except (WorkerError, ValueError) as error:
            session.report.note(FIGURE, case, f"failed: {error}")
            continue
        goal = None if at_most is None else (None, percentile(alone_ms, 0.99) + MORE_THAN_ALONE_MS if at_most == ALONE else at_most)
        session.report.add(FIGURE, case, "p99 ms", percentile(latencies, 0.99), goal, alone=percentile(alone_ms, 0.99),
                           native=percentile(native_ms, 0.99), xsched=percentile(latencies, 0.99),
                           details={"p50_ms": statistics.median(latencies), "latency_ms": latencies})
        session.report.add(FIGURE, case, "others keep", rest / left, native=native_rest / left, xsched=rest / left)
        tool.hint(ours[2], *NO_HINTS)


STAGES = {"policies": policies}
