#!/usr/bin/env python3
"""It keeps working: real processes, killed, stopped and stuck at the wrong moment.

  robustness.py --bin FOLDER --client PROGRAM [TEST…]     --list: the tests' names
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
        self.lines = []
        command = [*prefix, place.client, str(priority), mode, str(seconds), *([extra] if extra else [])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
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
        self.client = str(options.client)
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


@test
def without_a_server_a_program_runs_natively_with_one_warning(place):
    client = Client(place, 0, "continuous", 1)
    client.process.wait()
    check(client.progress() > 300, f"it ran ({client.progress()} commands)")
    warnings = client.process.stderr.read().strip().splitlines()
    check(len(warnings) == 1 and "xsched:" in warnings[0], f"one warning: {warnings}")


def server_ends(place, how):
    place.start_server()
    low, _ = held_client(place)
    moment = now_ms()
    place.server.send_signal(how)
    place.server.wait()
    time.sleep(0.4)
    after, bound = low.resumed_after(moment), slack()
    check(after is not None and after <= bound, f"the held client goes on within 100 ms: {after} (bound here {bound:.0f})")
    moment = now_ms()
    place.start_server()
    wait_until(lambda: any(q["state"] == "held" for q in place.queues()), "scheduled again without restart", 3)
    check(now_ms() - moment < 2000 + slack(), "within 2 s")


@test
def when_the_server_is_terminated_clients_run_on_and_are_scheduled_again_after_its_return(place):
    server_ends(place, signal.SIGTERM)


@test
def when_the_server_is_killed_clients_run_on_and_are_scheduled_again_after_its_return(place):
    server_ends(place, signal.SIGKILL)


def high_client_fails(place, how):
    place.start_server()
    low, high = held_client(place)
    moment = now_ms()
    high.kill(how)
    time.sleep(0.5)
    after, bound = low.resumed_after(moment), slack()
    check(after is not None and after <= bound, f"the held client goes on within 100 ms: {after} (bound here {bound:.0f})")
    return low, high


@test
def when_a_client_is_killed_those_that_it_held_go_on(place):
    high_client_fails(place, signal.SIGKILL)
    wait_until(lambda: len(place.queues()) == 1, "its queue is gone")


@test
def when_a_client_is_stopped_those_that_it_held_go_on_until_it_is_continued(place):
    _, high = high_client_fails(place, signal.SIGSTOP)
    high.kill(signal.SIGCONT)
    wait_until(lambda: any(q["priority"] == 0 and q["state"] == "held" for q in place.queues()), "its claim is back")


@test
def a_client_that_is_stuck_holds_nobody_up_for_long(place):
    place.start_server()
    low = Client(place, 0, "continuous")
    wait_until(lambda: low.progress() > 20, "the low client runs")
    Client(place, 5, "stuck")
    wait_until(lambda: any(q["priority"] == 5 and q["incidents"] > 0 for q in place.queues()), "an incident is counted")
    before = low.progress()
    time.sleep(0.3)
    check(low.progress() - before > 50, "the low client runs beside it")


@test
def after_exec_a_program_is_a_new_client(place):
    place.start_server()
    client = Client(place, 3, "task", 5, "exec")
    wait_until(lambda: client.progress() > 10, "it runs after exec")
    queues = place.queues()
    check(len(queues) == 1 and queues[0]["pid"] == client.process.pid, f"one queue, of the new program: {queues}")


@test
def a_forked_child_is_a_client_of_its_own_and_keeps_nothing_of_its_parent(place):
    place.start_server()
    client = Client(place, 3, "continuous", 6, "fork")
    wait_until(lambda: len(place.queues()) == 2, "two queues")
    pids = {q["pid"] for q in place.queues()}
    check(len(pids) == 2 and client.process.pid in pids, f"of two processes: {pids}")
    client.kill(signal.SIGKILL)
    wait_until(lambda: [q["pid"] for q in place.queues()] == list(pids - {client.process.pid}), "the parent's queue is gone", 2)


@test
def exit_from_any_thread_while_held_ends_the_program(place):
    place.start_server()
    high = Client(place, 5, "continuous")
    wait_until(lambda: high.progress() > 10, "the high client runs")
    low = Client(place, 0, "continuous", 20, "exit-thread")
    try:
        code = low.process.wait(5)
    except subprocess.TimeoutExpired:
        sys.exit("failed: it hangs")
    check(code == 7, f"with its own status: {code}")


@test
def five_hundred_queues_leave_no_descriptor_and_no_thread(place):
    place.start_server()
    client = Client(place, 0, "idle", 1, "queues")
    check(client.process.wait(30) == 0, "it ends well")
    client.reader.join()
    check(client.lines[-1:] == ["queues fds 0 threads 0"], f"nothing is left: {client.lines[-1:]}")
    wait_until(lambda: place.queues() == [], "the server has forgotten them")


@test
def a_second_server_says_that_there_is_one_and_exits(place):
    place.start_server()
    second = subprocess.run([str(place.bin / "xserver"), "--socket", place.socket], capture_output=True, text=True, timeout=10)
    check(second.returncode == 3 and "already" in second.stderr, f"{second.returncode}: {second.stderr}")
    check(place.tool("policy", "show").returncode == 0, "the first one still serves")


@test
def a_low_limit_of_descriptors_is_a_clear_message_and_the_program_runs(place):
    place.start_server()
    client = Client(place, 0, "continuous", 1, prefix=("sh", "-c", 'ulimit -n 4; exec "$0" "$@"'))
    client.process.wait()
    check(client.progress() > 300 or "XQueueCreate" in "".join(client.lines), "it ran")
    text = client.process.stderr.read()
    check("Too many open files" in text and "unscheduled" in text, f"it says why: {text}")


@test
def a_missing_runtime_folder_is_a_clear_message_and_the_program_runs(place):
    client = Client(place, 0, "continuous", 1, env={"XSCHED_SOCKET": "", "XDG_RUNTIME_DIR": "/nonexistent/folder"})
    client.process.wait()
    check(client.progress() > 300, "it ran")
    text = client.process.stderr.read()
    check("/nonexistent/folder" in text or "/run/xsched" in text, f"it says where it looked: {text}")


@test
def a_read_only_dev_shm_changes_nothing(place):
    command = 'mount -t tmpfs -o ro,size=4k none /dev/shm && exec "$0" "$@"'
    probe = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro none /dev/shm"], capture_output=True)
    if probe.returncode != 0:
        print("skipped: no private mounts here")
        sys.exit(77)
    place.start_server()
    client = Client(place, 0, "continuous", 3, prefix=("unshare", "-m", "sh", "-c", command))
    wait_until(lambda: len(place.queues()) == 1, "it is scheduled")


@test
def in_one_process_the_local_scheduler_serves_alone(place):
    client = Client(place, 0, "continuous", 1, env={"XSCHED_SCHEDULER": "LCL", "XSCHED_POLICY": "HPF"})
    client.process.wait()
    check(client.progress() > 300, "it ran")
    check(client.process.stderr.read() == "", "without a word")


@test
def shares_of_75_and_25_are_kept(place):
    place.start_server("--policy", "UP")
    # Each has a device of its own thread, so that only the policy divides the time.
    one, two = Client(place, 0, "continuous"), Client(place, 0, "continuous")
    wait_until(lambda: len(place.queues()) == 2, "two queues")
    first, second = sorted(place.queues(), key=lambda q: q["queue"])
    place.tool("hint", "--queue", str(first["queue"]), "--utilization", "75")
    place.tool("hint", "--queue", str(second["queue"]), "--utilization", "25")
    time.sleep(0.3)
    before = {q["queue"]: q["service_ns"] for q in place.queues()}
    time.sleep(2)
    after = {q["queue"]: q["service_ns"] for q in place.queues()}
    got = {key: after[key] - before[key] for key in before}
    share = got[first["queue"]] / sum(got.values())
    check(abs(share - 0.75) <= 0.05, f"75 : 25 within 5 points: {share:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--client", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TESTS))
        return
    for name in list(os.environ):
        if name.startswith("XSCHED_"):
            del os.environ[name]
    for name in options.tests or TESTS:
        place = Place(options)
        try:
            TESTS[name](place)
        finally:
            place.close()
        print(f"passed: {name}")


if __name__ == "__main__":
    main()
