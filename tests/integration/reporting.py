#!/usr/bin/env python3
"""xsched run --report: what it says, and that programs are as they are without it."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

from harness import Client, check, main, test, under, wait_until

COUNTER = """
import os, signal, sys, time
def note(number, frame):
    print("got", signal.Signals(number).name, flush=True)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, note)
print("ready", os.getpid(), flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    time.sleep(0.02)
print("end", flush=True)
"""


def reported(place, *program, options=(), report=True):
    return [str(place.bin / "xsched"), "run", "--no-server", *(["--report"] if report else []), *options, "--", *program]


def python(script, *arguments):
    return [sys.executable, "-c", script, *arguments]


def start(place, *program, start_new_session=False):
    return subprocess.Popen(reported(place, *program), start_new_session=start_new_session, env={**os.environ, **place.env}, stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(place, *program, **more):
    return subprocess.run(reported(place, *program, **more), env={**os.environ, **place.env}, stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=30)


class Terminal:
    """A shell with job control in a terminal."""

    def __init__(self, place, script):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "-mc", script], {**os.environ, **place.env})

    def read_until(self, pattern):
        end = time.monotonic() + 10
        while not re.search(pattern, self.text):
            check(time.monotonic() < end, f"the terminal shows {pattern!r}: {self.text!r}")
            try:
                self.text += os.read(self.fd, 4096).decode()
            except OSError:  # the shell has ended
                break
        check(re.search(pattern, self.text), f"the terminal shows {pattern!r}: {self.text!r}")

    def press(self, key):
        os.write(self.fd, key)

    def end(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@test
@under("thread")
def a_report_says_because_of_whom_a_program_waited(place):
    place.start_server()
    urgent = Client(place, 5, "task")
    wait_until(lambda: urgent.progress() > 30, "it works")
    outcome = run(place, place.client, "0", "continuous", "3")
    check(outcome.returncode == 0, f"with the program's status: {outcome.returncode}, {outcome.stderr}")
    check(all(line[:1].isdigit() for line in outcome.stdout.splitlines()), f"the program's output is its own: {outcome.stdout[:200]}")
    check(re.search(r"^xsched: .*soft_client 0 continuous 3: ran for \d\.\d s, exit status 0$", outcome.stderr, re.M), f"its head: {outcome.stderr}")
    check(re.search(r"had work for \d\.\d s, and used \d\.\d s of the device's time", outcome.stderr), f"device time: {outcome.stderr}")
    waits = re.search(rf"in (\d+) waits: held for soft_client \(pid {urgent.process.pid}\), priority 5", outcome.stderr)
    check(waits is not None and int(waits.group(1)) >= 5, f"because of whom it waited: {outcome.stderr}")
    check("missing" not in outcome.stderr, f"nothing is missing: {outcome.stderr}")


@test
def a_report_in_json_has_all_requests_of_a_program_that_ran_alone(place):
    place.start_server()
    path = pathlib.Path(place.folder) / "outcome.json"
    outcome = run(place, place.client, "3", "task", "2", options=[f"--report={path}"], report=False)
    check(outcome.returncode == 0 and "ran for" not in outcome.stderr, f"it is not on stderr as well: {outcome.stderr}")
    report = json.loads(path.read_text())
    process, = report["processes"]
    requests = process["requests"]
    check(report["exit_status"] == 0 and 1.9 <= report["seconds"] < 10, f"the program: {report}")
    check(process["name"] == "soft_client" and process["priority"] == 3 and process["queues"] == 1, f"its process: {process}")
    # A task of 30 commands of 1 ms each, every 100 ms.
    check(15 <= requests["count"] + requests["not_finished"] <= 22, f"each task is a request: {requests}")
    check(30 <= requests["p50_ms"] <= requests["p99_ms"] <= requests["longest_ms"], f"as long as it is: {requests}")
    check(process["waits"] == [] and process["held_seconds"] == 0, f"nothing held it: {process}")
    check(report["missing_seconds"] < 0.5 and report["problem"] == "" and report["lost_records"] == 0, f"nothing is missing: {report}")


@test
def a_job_of_two_processes_is_reported_as_one_and_others_are_not(place):
    place.start_server()
    other = Client(place, 0, "task")
    outcome = run(place, "sh", "-c", f"{place.client} 0 task 1.5 & {place.client} 0 task 1; wait")
    check("All 2 processes together\n" in outcome.stderr, f"together: {outcome.stderr}")
    pids = {int(pid) for pid in re.findall(r"^soft_client \(pid (\d+)\)", outcome.stderr, re.M)}
    check(len(pids) == 2 and other.process.pid not in pids, f"its processes alone: {outcome.stderr}")


@test
def the_end_of_a_program_is_the_end_of_xsched(place):
    place.start_server()
    for script, expected in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill -11 $$", -11), ("kill -15 $$", -15)):
        with_report, without = run(place, "sh", "-c", script), run(place, "sh", "-c", script, report=False)
        check(with_report.returncode == without.returncode == expected, f"{script}: {with_report.returncode}, {without.returncode}")
        check("No queue of it was recorded" in with_report.stderr, f"it used no device: {with_report.stderr}")
    for program, status in (("/no/such/program", 127), ("/etc/passwd", 126)):
        with_report, without = run(place, program), run(place, program, report=False)
        check(with_report.returncode == without.returncode == status, f"{program}: {with_report.returncode}, {without.returncode}")
        # Whatever else is wrong with it is said before that.
        check(with_report.stderr == without.stderr, f"the same is said: {with_report.stderr}, {without.stderr}")


@test
def a_signal_to_xsched_reaches_the_program_once(place):
    place.start_server()
    process = start(place, *python(COUNTER, "1.5"))
    check(process.stdout.readline().startswith("ready "), "it runs")
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
        check(process.stdout.readline() == f"got {number.name}\n", f"it gets {number.name}")
    check(process.stdout.read() == "end\n", "each once")
    check(process.wait(20) == 0 and "exit status 0" in process.stderr.read(), "and xsched goes on")


@test
def a_signal_to_the_process_group_reaches_the_program_once(place):
    place.start_server()
    process = start(place, *python(COUNTER, "2"), start_new_session=True)
    check(process.stdout.readline().startswith("ready "), "it runs")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        os.killpg(process.pid, number)
        check(process.stdout.readline() == f"got {number.name}\n", f"it gets {number.name}")
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    check(process.stdout.readline() == "got SIGTERM\n", "and one that is for xsched after it")
    check(process.stdout.read() == "end\n", "each once")
    check(process.wait(20) == 0, "and xsched goes on")


@test
def ctrl_c_reaches_the_program_once_and_xsched_stays_for_the_report(place):
    place.start_server()
    (pathlib.Path(place.folder) / "counter.py").write_text(COUNTER)
    terminal = Terminal(place, f"{' '.join(reported(place, sys.executable, place.folder + '/counter.py', '1.5'))}; echo status $?")
    terminal.read_until(r"ready \d+\s")
    terminal.press(b"\x03")
    terminal.read_until("status 0")
    check(terminal.text.count("got SIGINT") == 1, f"once: {terminal.text}")
    check("exit status 0" in terminal.text and terminal.text.index("end") < terminal.text.index("exit status 0"), f"the report: {terminal.text}")
    terminal.end()


@test
def ctrl_z_stops_both_and_fg_continues_them(place):
    place.start_server()
    (pathlib.Path(place.folder) / "counter.py").write_text(COUNTER)
    terminal = Terminal(place, f"{' '.join(reported(place, sys.executable, place.folder + '/counter.py', '2'))}; echo stopped $?; "
                               "read key; fg; echo status $?")
    terminal.read_until(r"ready \d+\s")
    program = int(re.search(r"ready (\d+)", terminal.text).group(1))
    terminal.press(b"\x1a")
    terminal.read_until(f"stopped {128 + signal.SIGTSTP}")
    wait_until(lambda: pathlib.Path(f"/proc/{program}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", "the program is stopped")
    terminal.press(b"\n")
    terminal.read_until("status 0")
    check("end" in terminal.text, f"it went on: {terminal.text}")
    terminal.end()


@test
def xsched_that_is_killed_takes_the_program_with_it(place):
    place.start_server()
    process = start(place, *python(COUNTER, "20"))
    program = int(process.stdout.readline().split()[1])
    process.kill()
    process.wait()
    wait_until(lambda: not pathlib.Path(f"/proc/{program}").exists() or
               pathlib.Path(f"/proc/{program}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z", "the program has ended")


@test
def the_end_of_the_output_is_seen_when_the_program_closes_it(place):
    place.start_server()
    process = start(place, "sh", "-c", "echo all; exec >&- 2>/dev/null; sleep 2")
    begin = time.monotonic()
    check(process.stdout.read() == "all\n" and time.monotonic() - begin < 1.5, "xsched does not hold it open")
    check(process.wait(20) == 0, "and waits for the program")


@test
def without_a_server_the_program_runs_and_the_report_says_so(place):
    outcome = run(place, place.client, "0", "task", "1")
    check(outcome.returncode == 0 and len(outcome.stdout.splitlines()) > 5, f"it runs natively: {outcome}")
    check(re.search(r"What happened in \d.*of this time is missing: .*start one with xserver", outcome.stderr), f"it says so: {outcome.stderr}")


@test
def a_server_that_hangs_delays_the_program_by_two_seconds_and_its_signals_by_less(place):
    place.start_server()
    place.server.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    process = start(place, *python(COUNTER, "3"))
    check(process.stdout.readline().startswith("ready ") and time.monotonic() - begin < 4, "it runs")
    for _ in range(3):
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        check(process.stdout.readline() == "got SIGTERM\n" and time.monotonic() - begin < 1, "it gets its signals")
        time.sleep(0.5)
    place.server.send_signal(signal.SIGCONT)
    _, errors = process.communicate(timeout=20)
    check(process.returncode == 0 and "does not answer" in errors, f"the report says so: {errors}")


@test
def a_server_that_ends_is_missing_in_the_report_until_another_is_there(place):
    place.start_server()
    process = start(place, place.client, "0", "task", "6")
    wait_until(lambda: place.queues(), "it has its queue")
    time.sleep(1)
    place.server.kill()
    place.server.wait()
    time.sleep(1)
    place.start_server()
    output, errors = process.communicate(timeout=20)
    check(process.returncode == 0, f"the program does not care: {process.returncode}")
    missing = re.search(r"What happened in (\d+\.\d) s of this time is missing: the server ended the connection", errors)
    check(missing is not None and 1 <= float(missing.group(1)) <= 3, f"it says for how long: {errors}")
    check(re.search(r"^  [1-9]\d* requests, p50", errors, re.M), f"and what was before and after: {errors}")


if __name__ == "__main__":
    main(__doc__)
