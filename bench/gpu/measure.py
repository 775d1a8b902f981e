"""Measures two programs beside each other."""
import contextlib
import shutil
import statistics
import subprocess
import time

from figures import percentile, rate

LEAD = 2.0  # seconds that a continuous program runs alone before the task begins
# Programs without graphs are bound by the processor, and on machines that are shared, one turn differs from the next by up to 40 %,
# natively as well.
EAGER_ROUNDS = 5


class Together:
    """The latencies of a task, and the rates of continuous programs in the same time, over several rounds."""

    def __init__(self, lead=LEAD):
        self.lead = lead
        self.latencies = []
        self.starts = []
        self.rates = []  # of each round: one per continuous program
        self.rates_before = []  # the same in the time before the task

    def add(self, task, progresses):
        self.latencies += task["latency_ms"]
        self.starts += task.get("start_us", [])
        self.rates.append([rate(progress, task["begin"], task["end"]) for progress in progresses])
        self.rates_before.append([rate(progress, task["begin"] - self.lead * 0.75, task["begin"]) for progress in progresses])

    def total_rate(self):
        return statistics.mean(sum(rates) for rates in self.rates)

    def total_before(self):
        return statistics.mean(sum(rates) for rates in self.rates_before)


def together(result, high, lows, task, continuous):
    """Runs one round: the `lows` run continuously, `high` runs the task. Commands are dictionaries."""
    for low in lows:
        low.send(do="continuous", **continuous)
    time.sleep(result.lead)
    latency = high.ask(do="task", **task)
    result.add(latency, [low.stop()["progress"] for low in lows])


def two_in_one(result, worker, command):
    """Runs one round of a program that contains both the task and the continuous work."""
    answer = worker.ask(lead_seconds=result.lead, **command)
    result.add(answer["task"], [answer["continuous"]["progress"]])


def by_turns(native, scheduled, rounds, **command):
    """Each program's answers, of the native ones and of those under XSched: one of each by turns."""
    answers = {worker: [] for worker in native + scheduled}
    for _ in range(rounds):
        for pair in zip(native, scheduled):
            for worker in pair:
                answers[worker].append(worker.ask(**command))
    return [[answers[worker] for worker in workers] for workers in (native, scheduled)]


def report_cost(report, figure, case, native_ns, xsched_ns, goal):
    """What XSched adds, from the time of each program."""
    theirs, ours = statistics.median(native_ns), statistics.median(xsched_ns)
    report.add(figure, case, "more than native, ns", ours - theirs, goal, native=theirs, xsched=ours,
               details={"native_ns": native_ns, "xsched_ns": xsched_ns})


def left_by(alone_latencies_ms, rate_hz):
    """The part of the device's time that the task leaves free, computed from its latency when it runs alone."""
    return 1 - statistics.median(alone_latencies_ms) / 1000 * rate_hz


def p99(values):
    return percentile(values, 0.99)


class Clock:
    """The clock of the first GPU's processors while the block runs: `mhz`, the median. None: there is no nvidia-smi.

    Under a load that needs more power than the GPU may take, it lowers its clock, for all of its programs."""

    def __init__(self):
        self.mhz = None

    def __enter__(self):
        query = ["nvidia-smi", "--id=0", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "--loop-ms=100"]
        self._samples = subprocess.Popen(query, stdout=subprocess.PIPE, text=True) if shutil.which(query[0]) else None
        return self

    def __exit__(self, *_):
        if self._samples is None:
            return
        self._samples.terminate()
        numbers = []
        for line in self._samples.communicate()[0].splitlines():
            with contextlib.suppress(ValueError):  # the last line may be cut, or say that it was ended
                numbers.append(float(line))
        self.mhz = statistics.median(numbers) if numbers else None
