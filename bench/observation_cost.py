#!/usr/bin/env python3
"""What it costs a program that the server remembers, counts and records what its queues do: the same program runs in turns without the
history, with it, with its metrics read each second, and recorded.

  observation_cost.py --bin FOLDER [--rounds N] [--seconds S] [--cores LIST] [--server-cores LIST] [--alone] [--keep-awake]
                      [--json FILE] [--rate REGEX] [--command PROGRAM ARGUMENT…]

  history     with the history : with --history 0
  metrics     with the metrics read each second : the history alone
  recording   with `xsched record` : the history alone

Each is a ratio of times per unit of work: 1.005 means that the program takes 0.5 % more. Printed are the median of the ratios of the rounds,
and the interval that has the true median with 95 % confidence (bootstrap over the rounds). The order of the four rotates from round to
round, and is reversed in every other turn, because a machine may become slower meanwhile.

The program is xsched-latency-task with one short kernel after another, so that each is a request. With --command it is another one, and
everything behind is its command line. It prints its rate at its end: the first group of --rate, by default the last number on its stdout in
front of "/s". Let it run for a few seconds.

The same program runs beside it with a lower priority (--alone: it does not), because the server follows a queue only while others wait for
it, or it waits for others. It is held for most of the time. Of --command, it is started again whenever it ends. Until it has a queue again,
the measured program is alone, so let the program run for much longer than it needs to start. It should not set its own priority:
by that, the two are told apart.

--cores are those of both programs, --server-cores those of the server and of what reads from it; "2,3" or "4-7". By default, both are
those on which this script may run.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from keep_awake import awake_cores

CASES = ("without history", "history", "metrics", "recording")
# Each cost, and the cases with and without it.
COSTS = {"history": ("history", "without history"), "metrics": ("metrics", "history"), "recording": ("recording", "history")}
RATE = r"([0-9][0-9.]*(?:e[+-]?[0-9]+)?)[^0-9\n]*/s"
PATIENCE = 30  # seconds, beyond what a program should take
MEASURED, BESIDE = 1, 0  # priorities of the measured program, and of the one beside it


def order_of(number):
    """The cases of this round. In eight rounds, each is at each place twice."""
    first = number % len(CASES)
    order = CASES[first:] + CASES[:first]
    return order if number // len(CASES) % 2 == 0 else order[::-1]


def ratios_of(rounds):
    """{cost: its ratio in each round}; a round: {case: rate}"""
    return {cost: [rates[without] / rates[with_it] for rates in rounds] for cost, (with_it, without) in COSTS.items()}


def interval_of(values, resamples=10_000):
    """The bounds of the median, with 95 % confidence."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples) - 1]


def summary_of(rounds):
    summary = {}
    for cost, ratios in ratios_of(rounds).items():
        low, high = interval_of(ratios)
        summary[cost] = {"median": statistics.median(ratios), "low": low, "high": high, "rounds": len(ratios)}
    return summary


def rate_of_task(output):
    """As xsched-latency-task writes it."""
    result = json.loads(output)
    return result["kernels"] / result["seconds"]


def rate_in(output, pattern):
    rates = re.findall(pattern, output)
    if not rates or float(rates[-1]) <= 0:
        sys.exit(f"no rate ({pattern}) is in what the program printed:\n{output}")
    return float(rates[-1])


def cores_of(text):
    cores = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


def on(cores):
    """What is in front of a command to run it on these cores. (With preexec_fn, Python may deadlock while it has several threads.)"""
    return ["taskset", "-c", ",".join(map(str, sorted(cores)))]


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"did not happen within {PATIENCE} s: {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def running(command, ending=signal.SIGTERM, **how):
    """A process in a group of its own, which ends with this."""
    process = subprocess.Popen(command, start_new_session=True, **how)
    try:
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, ending)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextlib.contextmanager
def lasting(command, **how):
    """As running(), but it is an error if the process ends by itself before."""
    with running(command, **how) as process:
        yield process
        if process.poll() is not None:
            sys.exit(f"ended with {process.returncode} before the measurement did: {' '.join(map(str, command))}")


def page_at(path):
    """The metrics at this Unix socket."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(PATIENCE)
    with contextlib.closing(connection):
        connection.sock.connect(path)
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        if response.status != 200:
            raise http.client.HTTPException(f"the metrics were read with status {response.status}")
        return response.read().decode()


def has_measured(page):
    return re.search(rf'^xsched_process_queues{{.*\bpriority="{MEASURED}"', page, re.MULTILINE) is not None


@contextlib.contextmanager
def reading(path):
    """Reads this page each second, as Prometheus would. Yields a future: how many pages had the measured program."""
    ends = threading.Event()

    def read():
        pages = 0
        while not ends.is_set():
            pages += has_measured(page_at(path))
            ends.wait(1)
        return pages

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(read)
        finally:
            ends.set()


def bursts_of_measured(recording):
    """How many bursts of the measured program are in the lines of a recording."""
    queues, bursts = set(), 0
    for line in map(json.loads, recording):
        queue, burst = line.get("queue"), line.get("burst")
        if queue and queue["hints"]["priority"] == MEASURED:
            queues.add(queue["id"])
        bursts += burst is not None and burst["queue"] in queues
    return bursts


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("XSCHED_") and name not in ("LD_PRELOAD", "OPENCL_LAYERS")}
        self.measured, self.beside = (options.command, options.command) if options.command else self.latency_tasks()

    def program(self, name):
        return str(self.options.bin / name)

    def latency_tasks(self):
        """The programs if none is named. Their kernels are as long in all rounds."""
        task = self.program("xsched-latency-task")
        loops = subprocess.run([*on(self.options.cores), task, "--calibrate"], env=self.environment, capture_output=True, text=True,
                               check=True).stdout.strip()
        command = [task, "--continuous", "--ahead", "1", "--kernel-ms", str(self.options.kernel_ms), "--loops-per-ms", loops, "--seconds"]
        return [*command, str(self.options.seconds)], [*command, str(self.options.seconds + 100 * PATIENCE)]

    def environment_of(self, case):
        server = "without" if case == "without history" else "with"
        return {**self.environment, "XSCHED_SOCKET": str(self.folder / server), "XSCHED_SCHEDULER": "GLB"}

    @contextlib.contextmanager
    def servers(self):
        """Both run all the time, so that the history is as full as it becomes. The one that is not used sleeps."""
        command = [*on(self.options.server_cores), self.program("xserver"), "--user", "--policy", "HPF", "--log-level", "error", "--socket"]
        with lasting([*command, self.folder / "without", "--history", "0"], env=self.environment), \
             lasting([*command, self.folder / "with", "--metrics", self.folder / "metrics"], env=self.environment):
            for case in CASES:
                wait_until(lambda case=case: self.queues(case) is not None, "the server answers")
            yield

    def queues(self, case):
        """None: the server does not answer."""
        listed = subprocess.run([self.program("xsched"), "list", "--json"], env=self.environment_of(case), capture_output=True, text=True,
                                timeout=PATIENCE, check=False)
        return json.loads(listed.stdout) if listed.returncode == 0 else None

    def with_priority(self, priority, command):
        return [*on(self.options.cores), self.program("xsched"), "run", "--no-server", "-p", str(priority), "--", *command]

    @contextlib.contextmanager
    def rival(self, case):
        """The loop ends when the program fails."""
        if self.options.alone:
            yield
            return
        again = ["sh", "-c", 'while "$@"; do :; done', "sh", *self.with_priority(BESIDE, self.beside)]
        with lasting(again, env=self.environment_of(case), stdout=subprocess.DEVNULL):
            wait_until(lambda: self.queues(case), "the program beside it has a queue")
            yield
        wait_until(lambda: not self.queues(case), "its queues are gone")

    @contextlib.contextmanager
    def observed(self, case):
        if case == "metrics":
            with reading(str(self.folder / "metrics")) as pages:
                yield
            if pages.result() == 0:
                sys.exit("no page of metrics had the program")
        elif case == "recording":
            file = self.folder / "recording.xrec"
            record = [*on(self.options.server_cores), self.program("xsched"), "record", "--output", file]
            with lasting(record, ending=signal.SIGINT, env=self.environment_of(case), stderr=subprocess.DEVNULL):
                wait_until(lambda: file.exists() and file.stat().st_size != 0, "it records")
                yield
            if bursts_of_measured(file.read_text().splitlines()) == 0:
                sys.exit("nothing was recorded of the program: does it run under XSched?")
            file.unlink()
        else:
            yield

    def measure(self, case):
        """The program's rate."""
        with self.rival(case), self.observed(case), \
             running(self.with_priority(MEASURED, self.measured), env=self.environment_of(case), stdout=subprocess.PIPE,
                     text=True) as measured:
            output, _ = measured.communicate(timeout=10 * PATIENCE)
        if measured.returncode != 0:
            sys.exit(f"the program ended with {measured.returncode}")
        return rate_in(output, self.options.rate) if self.options.command else rate_of_task(output)

    def round(self, number):
        return {case: self.measure(case) for case in order_of(number)}


def measured_rounds(options):
    """Wakes cores first, because it wakes those on which this process may run."""
    with tempfile.TemporaryDirectory() as folder, awake_cores() if options.keep_awake else contextlib.nullcontext():
        os.sched_setaffinity(0, options.server_cores)
        bench = Bench(options, folder)
        with bench.servers():
            return [bench.round(number) for number in range(options.rounds)]


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=lambda text: pathlib.Path(text).resolve(), required=True, help="the folder with xsched and xserver")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement, if there is no --command")
    parser.add_argument("--kernel-ms", type=float, default=0.5, help="likewise, of each kernel")
    parser.add_argument("--cores", type=cores_of, default=os.sched_getaffinity(0))
    parser.add_argument("--server-cores", type=cores_of, default=os.sched_getaffinity(0))
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--keep-awake", action="store_true", help="no core sleeps for long meanwhile (keep_awake.py)")
    parser.add_argument("--json", type=pathlib.Path, help="also the rates of each round")
    parser.add_argument("--rate", default=RATE)
    parser.add_argument("--command", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    rounds = measured_rounds(options)
    summary = summary_of(rounds)
    for cost, found in summary.items():
        print(f"{cost}: {found['median']:.4f} ({found['low']:.4f} to {found['high']:.4f}; {found['rounds']} rounds)")
    if options.json:
        options.json.write_text(json.dumps({"costs": summary, "rounds": rounds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
