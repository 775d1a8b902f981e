"""Servers and clients as real processes, for the scripts beside this one.

Each script: --bin FOLDER --lib FOLDER [--wide-bounds] [TEST…]
             --list [SANITIZER]: the tests' names, or those that also run under it
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TESTS = {}
SANITIZED = {"address": [], "thread": []}  # the names of tests that also run under a sanitizer


def test(function):
    TESTS[function.__name__] = function
    return function


def under(sanitizer):
    """Marks a test that also runs under this sanitizer, in CI as well: a few seconds, and no tight bounds. Each has one."""

    def mark(function):
        SANITIZED[sanitizer].append(function.__name__)
        return function

    return mark


def now_ms():
    return time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3


class Client:
    """A soft_client and the lines that it has written."""

    def __init__(self, place, priority, mode, seconds=20, extra=None, env=None, prefix=()):
        self.start(place, [*prefix, place.client, str(priority), mode, str(seconds), *([extra] if extra else [])], env)

    def start(self, place, command, env=None):
        self.lines = []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **place.env, **(env or {})})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        place.clients.append(self)

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def samples(self):
        return [(float(a), int(b)) for a, b in (line.split() for line in list(self.lines) if line[:1].isdigit())]

    def progress(self):
        samples = self.samples()
        return samples[-1][1] if samples else 0

    def resumed_after(self, moment, still=0):
        """Milliseconds from `moment` to the first progress beyond the commands in flight."""
        at = None
        samples = self.samples()
        before = [count for time_ms, count in samples if time_ms <= moment]
        base = (before[-1] if before else 0) + still
        for time_ms, count in samples:
            if time_ms > moment and count > base:
                at = time_ms - moment
                break
        return at

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        return self.process.stderr.read()


class Place:
    def __init__(self, options, wide_bounds=False):
        self.folder = tempfile.mkdtemp(prefix="xsched-test-")
        self.socket = os.path.join(self.folder, "s")
        self.bin = options.bin
        self.lib = options.lib
        # Under a sanitizer, and beside other tests: clients may take a server for hanging that is only late.
        self.wide_bounds = wide_bounds
        self.client = str(options.bin / "soft_client")
        self.env = {"XSCHED_SOCKET": self.socket, "XSCHED_SCHEDULER": "GLB"}
        self.clients = []
        self.server = None
        # What sanitizers find in any of the processes, some of which are killed before they could report it otherwise.
        self.reports = pathlib.Path(self.folder) / "report"
        self.sanitizers = {name: f"{os.environ.get(name, '')}:log_path={self.reports}"
                           for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")}
        self.env |= self.sanitizers

    def start_server(self, *arguments, log_level="error", stderr=None):
        self.server = subprocess.Popen([str(self.bin / "xserver"), "--socket", self.socket, "--log-level", log_level, *arguments],
                                       env={**os.environ, **self.sanitizers}, stderr=stderr)
        wait_until(lambda: os.path.exists(self.socket) and self.tool("policy", "show").returncode == 0, "the server answers")
        return self.server

    def tool(self, *arguments, env=None):
        return subprocess.run([str(self.bin / "xsched"), *arguments], env={**os.environ, **self.env, **(env or {})}, capture_output=True,
                              text=True, timeout=20)

    def queues(self):
        return json.loads(self.tool("list", "--json").stdout or "[]")

    def close(self):
        for client in self.clients:
            client.end()
        if self.server and self.server.poll() is None:
            self.server.kill()
            self.server.wait()
        reports = [report.read_text() for report in self.reports.parent.glob("report.*")]
        shutil.rmtree(self.folder, ignore_errors=True)
        check(not reports, "a sanitizer found this:\n" + "\n".join(reports))


def wait_until(condition, what, seconds=10):
    """`what`: a text, or a function that says when it has not happened how things are."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"did not happen within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.01)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def left_nothing(line, what, memory_kb):
    """`line`: what ProcessUsage::PrintGrowth wrote. The thread that calls drivers begins when it is first needed, on a busy machine
    after the first measurement."""
    name, _, fds, _, threads, _, resident_kb = line.split()
    check((name, fds) == (what, "0") and int(threads) <= 1, f"no descriptor and no thread is left: {line}")
    check(int(resident_kb) <= memory_kb, f"and no memory: {line}")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


# A loaded machine may be late with everything. So the bound of 100 ms is added to the delay that a sleep of 10 ms has.
def slack():
    worst = 0.0
    for _ in range(20):
        begin = now_ms()
        time.sleep(0.01)
        worst = max(worst, now_ms() - begin - 10)
    return 100 + 20 + 2 * worst  # 20 ms: two lines of the client


def numbers_after(client, word):
    """The numbers of the client's lines "<word> <number>"."""
    return [float(line.split()[1]) for line in list(client.lines) if line.startswith(word + " ")]


def nobody_waits_for_a_server_that_hangs(place, start, makes, hundred_ms=100):
    """`start(priority)` starts a client that works until it ends; by the line "<makes> 1" it makes a queue or a stream. A hundred of
    them take at most `hundred_ms`."""
    place.start_server()
    low = start(0)
    wait_until(lambda: low.progress() > 20, "it works")
    urgent = start(5)
    wait_until(lambda: any(q["priority"] == 0 and q["state"] == "held" for q in place.queues()), "it is held")
    place.server.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    moment = now_ms()
    urgent.end()
    wait_until(lambda: low.resumed_after(moment, 2) is not None, "the urgent one has gone, and the held one works", 3)
    late = slack() - 100
    check(low.resumed_after(moment, 2) <= 250 + late, f"within 250 ms: {low.resumed_after(moment, 2)}")
    for count in (1, 100):
        low.say(f"{makes} {count}")
    wait_until(lambda: len(numbers_after(low, "took")) == 2, f"it makes {makes}")
    check(numbers_after(low, "took")[0] <= 50 + late, f"one within 50 ms: {numbers_after(low, 'took')}")
    check(numbers_after(low, "took")[1] <= hundred_ms + late, f"and a hundred soon: {numbers_after(low, 'took')}")
    new = start(0)
    wait_until(lambda: new.progress() > 0, "a program starts, and works")
    place.server.send_signal(signal.SIGCONT)
    wait_until(lambda: {q["pid"] for q in place.queues()} >= {low.process.pid, new.process.pid}, "and is scheduled later", 3)


def held_client(place):
    """A low client held by a high one."""
    low = Client(place, 0, "continuous")
    wait_until(lambda: low.progress() > 20, "the low client runs")
    high = Client(place, 5, "continuous")
    wait_until(lambda: any(q["priority"] == 0 and q["state"] == "held" for q in place.queues()), "the low client is held")

    def stands_still():
        before = low.progress()
        time.sleep(0.2)
        return low.progress() - before <= 2

    wait_until(stands_still, "a held client makes no progress")
    return low, high


def in_private_dev_shm(options, fill=""):
    """The command prefix that runs a program with its own tiny /dev/shm. Skips the test if this is not allowed."""
    mount = f"mount -t tmpfs -o {options} none /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode != 0:
        skip("no private mounts here")
    return ("unshare", "-m", "sh", "-c", f'{mount} && {fill}exec "$0" "$@"')


def main(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--lib", type=pathlib.Path)
    parser.add_argument("--wide-bounds", action="store_true")
    parser.add_argument("--list", nargs="?", const="", choices=("", *SANITIZED))
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    if options.list is not None:
        print("\n".join(name for name in TESTS if name in SANITIZED.get(options.list, TESTS)))
        return
    for name in list(os.environ):
        if name.startswith("XSCHED_") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
            del os.environ[name]
    for name in options.tests or TESTS:
        place = Place(options, options.wide_bounds)
        try:
            TESTS[name](place)
        finally:
            place.close()
        print(f"passed: {name}")
