"""Servers and clients as real processes: what the scripts beside this one share.

Each script: --bin FOLDER --lib FOLDER [TEST…]     --list: the tests' names
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


def test(function):
    TESTS[function.__name__] = function
    return function


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
        """Milliseconds from `moment` to the first progress beyond what was in flight."""
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
    def __init__(self, options):
        self.folder = tempfile.mkdtemp(prefix="xsched-test-")
        self.socket = os.path.join(self.folder, "s")
        self.bin = options.bin
        self.lib = options.lib
        self.client = str(options.bin / "soft_client")
        self.env = {"XSCHED_SOCKET": self.socket, "XSCHED_SCHEDULER": "GLB"}
        self.clients = []
        self.server = None

    def start_server(self, *arguments):
        self.server = subprocess.Popen([str(self.bin / "xserver"), "--socket", self.socket, "--log-level", "error", *arguments])
        wait_until(lambda: os.path.exists(self.socket) and self.tool("policy", "show").returncode == 0, "the server answers")
        return self.server

    def tool(self, *arguments):
        return subprocess.run([str(self.bin / "xsched"), *arguments], env={**os.environ, **self.env}, capture_output=True,
                              text=True, timeout=20)

    def queues(self):
        return json.loads(self.tool("list", "--json").stdout or "[]")

    def close(self):
        for client in self.clients:
            client.end()
        if self.server and self.server.poll() is None:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_until(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"did not happen within {seconds} s: {what}")
        time.sleep(0.01)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def left_nothing(line, what, memory_kb):
    """`line`: what ProcessUsage::PrintGrowth wrote."""
    name, _, fds, _, threads, _, resident_kb = line.split()
    check((name, fds, threads) == (what, "0", "0"), f"no descriptor and no thread is left: {line}")
    check(int(resident_kb) <= memory_kb, f"and no memory: {line}")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


# A loaded machine may take longer to run anything at all: the bound of 100 ms is on top of what a sleeper of 10 ms sees.
def slack():
    worst = 0.0
    for _ in range(20):
        begin = now_ms()
        time.sleep(0.01)
        worst = max(worst, now_ms() - begin - 10)
    return 100 + 20 + 2 * worst  # 20 ms: two lines of the client


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
    """What runs a program with a tiny /dev/shm of its own; skips the test where that is not allowed."""
    mount = f"mount -t tmpfs -o {options} none /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode != 0:
        skip("no private mounts here")
    return ("unshare", "-m", "sh", "-c", f'{mount} && {fill}exec "$0" "$@"')


def main(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--lib", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TESTS))
        return
    for name in list(os.environ):
        if name.startswith("XSCHED_") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
            del os.environ[name]
    for name in options.tests or TESTS:
        place = Place(options)
        try:
            TESTS[name](place)
        finally:
            place.close()
        print(f"passed: {name}")
