"""The environment of a test: it starts programs natively and under XSched, with a separate server, and records expectations."""
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess

from catalogue import Failed
from measure import LEAD, Together
from page import Plot
from platforms import PLATFORMS
from session import Session

QUICK_LEAD = 1.0
ANSWERS_WITHIN = 20  # seconds, of XSched's own commands


class TestBed(Session):
    """`log`: the test's file, to which all of its programs write."""

    def __init__(self, binaries, seconds, log, machine, quick):
        super().__init__(pathlib.Path(binaries), seconds, None, log)
        self.machine = machine
        self.platform = machine.platform
        self.quick = quick
        self.lead = QUICK_LEAD if quick else LEAD  # seconds until a continuous program has reached its speed
        # The user's settings for a platform (its level). The test sets all other XSCHED_… variables.
        self.extra_environment = {name: value for name, value in os.environ.items()
                                  if name.startswith(tuple(f"XSCHED_{platform.upper()}_" for platform in PLATFORMS))}
        self.metrics = dict(self.extra_environment)
        self.criteria = []
        self.plots = []
        self.latencies = {}
        self.notes = []
        self.problems = []

    # ---- expectations ----

    def note(self, text):
        self.notes.append(text)

    def expect(self, condition, text):
        """Checks a condition. If it does not hold, the test fails, but goes on."""
        if not condition:
            self.problems.append(text)

    def judge(self, what, value, *, at_most=None, at_least=None, goal=None):
        """Records a figure. Beyond `at_most` or `at_least`, the test fails. The `goal` is only reported."""
        sense = "at least" if at_least is not None else "at most"
        limit = at_least if at_least is not None else at_most
        self.metrics[what] = value
        self.criteria.append({"what": what, "value": value, "sense": sense, "goal": goal, "limit": limit})
        if limit is not None and (value < limit if sense == "at least" else value > limit):
            self.problems.append(f"{what}: {value:.4g}, and {sense} {limit:g} is asked for")
        elif goal is not None and (value < goal if sense == "at least" else value > goal):
            self.note(f"{what}: {value:.4g} misses the goal of {sense} {goal:g}")

    def plot(self, *arguments, **options):
        """Adds a Plot (page.py) to the page of results."""
        self.plots.append(dataclasses.asdict(Plot(*arguments, **options)))

    def show_latencies(self, title, **series):
        """Adds how often each latency occurred to the page of results: of each series its milliseconds."""
        self.latencies[title] = series

    # ---- programs ----

    def output(self, words, *, scheduled=False, options=(), seconds=None, environment=None):
        """(exit status, standard output) of a program, under `xsched run` if `scheduled`. Its standard error goes to the log. If it
        hangs, the test fails."""
        prefix = self.prefix(*map(str, options)) if scheduled else []
        command = [*prefix, *map(str, words)]
        self.log.write(f"--- {' '.join(command)}\n")
        self.log.flush()
        try:
            done = subprocess.run(command, env=self.environment(scheduled) | (environment or {}), stdout=subprocess.PIPE,
                                  stderr=self.log, text=True, errors="replace", check=False,
                                  timeout=min(seconds or ANSWERS_WITHIN, self.left()))
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{words[0]} did not end within {late.timeout:.0f} s") from late
        self.log.write(done.stdout)
        return done.returncode, done.stdout

    def xsched(self, *words):
        """The output of xsched, with this test's server if there is one."""
        status, text = self.output([self.binaries / "xsched", *words],
                                   environment={"XSCHED_SOCKET": self._socket} if self._socket else None)
        if status != 0:
            raise Failed(f"xsched {' '.join(map(str, words))}: status {status}")
        return text

    def queues(self, pid):
        return json.loads(self.xsched("list", "--json", "--pid", pid))

    def library(self, name):
        """The path of an XSched library, where the programs look for it."""
        found = sorted((self.binaries.parent).glob(f"lib*/lib{name}.so")) + sorted(
            (self.binaries.parent).glob(f"lib/*/lib{name}.so"))
        if not found:
            raise Failed(f"lib{name}.so is not in {self.binaries.parent}/lib")
        return found[0]

    def kernel_workers(self, native=0, scheduled=()):
        """(native programs, programs under XSched, each with its options), ready to run kernels. Sets `calibration`."""
        ours = [self.torch(*options, jobs=[], scheduled=True) for options in scheduled]
        natives = [self.torch(jobs=[]) for _ in range(native)]
        self.ready(natives, ours)
        self.calibration = natives[0].ask(do="calibrate")
        return natives, ours

    def build(self, workers, *jobs):
        """Waits until each program has begun, so that a held program is not one that has not begun yet."""
        for worker in workers:
            worker.ask(do="prepare", jobs=jobs)

    def kernel_job(self, kernel_us, kernels=1):
        """The description of a job."""
        return {"kernel_us": kernel_us, "kernels": kernels, **self.calibration}

    def together(self):
        return Together(self.lead)

    def gate_level(self):
        """The platform's best level below 3: commands in flight when a queue is suspended run to their end."""
        return PLATFORMS[self.platform].GATE_LEVEL

    @contextlib.contextmanager
    def competitor(self):
        """An urgent program that needs the device from time to time, so that the measured or checked program is held."""
        worker = self.torch("-p", 10, jobs=[], scheduled=True)
        self.ready([worker])
        job = {"kernel_us": 200, "kernels": 5, **worker.ask(do="calibrate")}
        worker.send(do="task", job=job, rate_hz=20, seconds=self.left())
        yield
