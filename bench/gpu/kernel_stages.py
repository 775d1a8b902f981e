"""The figures with kernels of known length (gpu_task)."""
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from figures import percentile, rate, summary
from measure import LEAD, Together, left_by, p99, together, two_in_one
from session import Skipped

HIGH = ("-p", 10)
LOW = ("-p", 0)
TASK = {"kernel_us": 200, "kernels": 5, "rate_hz": 50}
ROUNDS = 2


def calibrate(session):
    with session.step("0", "calibration", 60):
        session.calibration = session.kernels().ask(do="calibrate")
        session.report.add("0", "work kernel", "loops per µs", session.calibration["loops_per_us"],
                           details=session.calibration)


# ---- figure 1 ----

def turns(session, workers, command, figure_of, count):
    """Asks the workers alternately. Returns the answers of each."""
    answers = [[] for _ in workers]
    for _ in range(count):
        for worker, answer in zip(workers, answers):
            answer.append(worker.ask(**command)[figure_of])
    return answers


def idle_competitor(session):
    """Starts a more urgent program that launches something once and is then idle. It keeps its stream: without one, it is no competitor."""
    idle = session.kernels(*HIGH, scheduled=True)
    session.ready([idle])
    idle.ask(do="stay")


def alone(session):
    """Figure 1, kernels: the cost of being under XSched, without and with an idle competitor."""
    goals = {3: 1.03, 10: 1.02, 50: 1.01, 500: 1.002}
    for competitor in (False, True):
        with session.step("1", "kernels, idle competitor" if competitor else "kernels", 120), session.server():
            native, scheduled = session.kernels(), session.kernels(*LOW, scheduled=True)
            session.ready([native, scheduled])
            if competitor:
                idle_competitor(session)
            for size, goal in goals.items():
                kernels = max(200, int(0.04 * session.seconds * 1e6 / size))
                command = {"do": "count", "kernel_us": size, "kernels": kernels}
                native.ask(**command)
                ours, theirs = reversed(turns(session, (native, scheduled), command, "seconds", 7))
                ratio = statistics.median(a / b for a, b in zip(ours, theirs))
                per_kernel = [statistics.median(seconds) / kernels * 1e6 for seconds in (theirs, ours)]
                session.report.add("1", f"kernels of {size} µs{', idle competitor' if competitor else ''}", "time : native",
                                   ratio, (None, goal), native=per_kernel[0], xsched=per_kernel[1],
                                   details={"native_s": theirs, "xsched_s": ours, "kernels": kernels})


# ---- figure 2 ----

def measure_beside(session, task, low_us, lows=1, high=HIGH, low=LOW, rounds=ROUNDS):
    """(latencies alone, native, XSched): each round has all three."""
    task = dict(task, seconds=session.seconds / rounds)
    continuous = {"kernel_us": low_us}
    native = [session.kernels() for _ in range(1 + lows)]
    scheduled = [session.kernels(*(low if index else high), scheduled=True) for index in range(1 + lows)]
    session.ready(native, scheduled)
    alone_ms, beside, ours = [], Together(), Together()
    for _ in range(rounds):
        alone_ms += native[0].ask(do="task", **task)["latency_ms"]
        together(beside, native[0], native[1:], task, continuous)
        together(ours, scheduled[0], scheduled[1:], task, continuous)
    return alone_ms, beside, ours


def report_kept(report, figure, case, alone_ms, rate_hz, native, ours, goal=None):
    """The continuous programs' throughput, as a share of the time that the task leaves free. Reference: their native rate before
    the task began."""
    left = native.total_before() * left_by(alone_ms, rate_hz)
    report.add(figure, case, "others keep", ours.total_rate() / left, goal and (goal, None), alone=native.total_before(),
               native=native.total_rate() / left, xsched=ours.total_rate() / left)


def report_latency(report, figure, case, alone_ms, native, ours, goal):
    report.add(figure, case, "p99 : alone", p99(ours.latencies) / p99(alone_ms), (None, goal), alone=summary(alone_ms),
               native=summary(native.latencies), xsched=summary(ours.latencies),
               details={"native_ratio": p99(native.latencies) / p99(alone_ms), "alone_ms": alone_ms,
                        "native_ms": native.latencies, "xsched_ms": ours.latencies})


def limit(session, steps):
    """Seconds for `steps` measurements with what is around them."""
    return 60 + steps * (session.seconds + ROUNDS * (LEAD + 1)) * 1.5


def wakes(session):
    """How late the machine itself wakes threads, beside a continuous program: requests that are late for this are late on any GPU."""
    case = "the machine, beside a continuous program"
    with session.step("0", case, limit(session, 1)):
        idle, low = session.kernels(), session.kernels()
        session.ready([idle, low])
        low.send(do="continuous", kernel_us=200)
        answer = idle.ask(do="wakes", rate_hz=TASK["rate_hz"], seconds=session.seconds)
        low.stop()
        for name, what in (("timer_us", "a timer is late, µs p99"), ("thread_us", "a thread is woken after, µs p99")):
            session.report.add("0", case, what, percentile(answer[name], 0.99), native=summary(answer[name]),
                               details={"native_us": answer[name]})


def pair(session):
    """Figure 2: an urgent task in one process, a continuous program in another."""
    wakes(session)
    cases = [(f"5 × 200 µs at 50 Hz beside {low_us} µs", TASK, low_us, 1.25) for low_us in (20, 200, 1000, 10000)]
    cases.append(("10 × 1 ms at 20 Hz beside 1 ms", {"kernel_us": 1000, "kernels": 10, "rate_hz": 20}, 1000, 1.03))
    for case, task, low_us, goal in cases:
        with session.step("2", case, limit(session, 3)), session.server():
            alone_ms, native, ours = measure_beside(session, task, low_us)
            report_latency(session.report, "2", case, alone_ms, native, ours, goal)
            report_kept(session.report, "2", case, alone_ms, task["rate_hz"], native, ours, 0.97)


@contextlib.contextmanager
def mps_server(session):
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        raise Skipped("no nvidia-cuda-mps-control")
    with tempfile.TemporaryDirectory(prefix="xsched-mps-") as folder:
        where = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = dict(os.environ, **where)
        subprocess.run([control, "-d"], env=environment, check=True, timeout=20, stdout=session.log, stderr=session.log)
        session.extra_environment = where
        try:
            yield
        finally:
            session.extra_environment = {}
            session.close_workers()
            subprocess.run([control], input="quit -t 5\n", text=True, env=environment, timeout=30, check=False,
                           stdout=session.log, stderr=session.log)
            for log in pathlib.Path(folder).glob("*.log"):
                session.log.write(log.read_text(errors="replace"))


def mps(session):
    """Figure 2 under MPS: all programs share one context, so there are only gates."""
    for low_us in (20, 200):
        case = f"MPS: 5 × 200 µs at 50 Hz beside {low_us} µs"
        with session.step("2", case, limit(session, 3)), mps_server(session), session.server():
            alone_ms, native, ours = measure_beside(session, TASK, low_us)
            session.report.add("2", case, "(p99 − one kernel) : alone",
                               (p99(ours.latencies) - low_us / 1000) / p99(alone_ms), (None, 1.15), alone=summary(alone_ms),
                               native=summary(native.latencies), xsched=summary(ours.latencies))
            report_kept(session.report, "2", case, alone_ms, TASK["rate_hz"], native, ours)


# ---- figure 3 ----

def streams(session):
    """Figure 3: task and continuous work in two streams of one process."""
    for low_us in (20, 200, 1000):
        case = f"two streams: 5 × 200 µs at 50 Hz beside {low_us} µs"
        with session.step("3", case, limit(session, 3)), session.server():
            task = dict(TASK, seconds=session.seconds / ROUNDS)
            command = {"do": "two_streams", "low_kernel_us": low_us, **task}
            native, scheduled = session.kernels(), session.kernels(scheduled=True)
            session.ready([native, scheduled])
            alone_ms, beside, ours = [], Together(), Together()
            for _ in range(ROUNDS):
                alone_ms += native.ask(do="task", **task)["latency_ms"]
                two_in_one(beside, native, command)
                two_in_one(ours, scheduled, command)
            if low_us == 20:
                report_latency(session.report, "3", case, alone_ms, beside, ours, 1.05)
            else:
                over_us = (p99(ours.latencies) - p99(alone_ms)) * 1000 - low_us
                session.report.add("3", case, "p99 − alone − one kernel, µs", over_us, (None, 50), alone=summary(alone_ms),
                                   native=summary(beside.latencies), xsched=summary(ours.latencies))
            report_kept(session.report, "3", case, alone_ms, TASK["rate_hz"], beside, ours)


# ---- figures 4 and 5 ----

def three(session):
    """Figure 4: one urgent and two continuous processes."""
    case = "one high, two low"
    with session.step("4", case, limit(session, 3)), session.server():
        alone_ms, native, ours = measure_beside(session, TASK, 200, lows=2)
        report_latency(session.report, "4", case, alone_ms, native, ours, 1.3)
        shares = [statistics.mean(rates[0] / sum(rates) for rates in run.rates) * 100 for run in (native, ours)]
        session.report.add("4", case, "% of the first low one", shares[1], (45, 55), native=shares[0], xsched=shares[1])
        report_kept(session.report, "4", case, alone_ms, TASK["rate_hz"], native, ours, 0.95)


def share(session):
    """Figure 5: two continuous processes with shares 75 : 25 under UP."""
    for kernel_us in (20, 200, 1000):
        case = f"shares 75 : 25, kernels of {kernel_us} µs"
        with session.step("5", case, limit(session, 2)), session.server(policy="UP"):
            native = [session.kernels() for _ in range(2)]
            ours = [session.kernels("-u", percent, scheduled=True) for percent in (75, 25)]
            session.ready(native, ours)
            (theirs_first, theirs_second), (first, second) = (both_continuously(session, pair_, (kernel_us, kernel_us))
                                                              for pair_ in (native, ours))
            percent = first / (first + second) * 100
            session.report.add("5", case, "% of the first", percent, (73, 77),
                               native=theirs_first / (theirs_first + theirs_second) * 100, xsched=percent)
            total = (first + second) / (theirs_first + theirs_second)
            session.report.add("5", case, "total : native", total, (0.97, None), native=theirs_first + theirs_second,
                               xsched=first + second)


def gates(session):
    """Figure 5: two continuous processes with equal shares under UP, by gates alone, with kernels of two lengths. What one has begun
    when it is held runs to its end."""
    for level in (1, 2):
        for lengths in ((500, 5000), (2000, 15000), (10000, 20000)):
            case = f"shares 50 : 50 at level {level}, kernels of {lengths[0]} and {lengths[1]} µs"
            with session.step("5", case, limit(session, 2)), session.server(policy="UP"):
                native = [session.kernels() for _ in range(2)]
                ours = [session.kernels("-u", 50, "--level", level, scheduled=True) for _ in range(2)]
                session.ready(native, ours)
                (theirs, times) = ([rate * us for rate, us in zip(both_continuously(session, pair_, lengths), lengths)]
                                   for pair_ in (native, ours))
                percent = times[0] / sum(times) * 100
                session.report.add("5", case, "% of the first's device time", percent, (49, 51),
                                   native=theirs[0] / sum(theirs) * 100, xsched=percent)
                session.report.add("5", case, "total device time : native", sum(times) / sum(theirs), (0.97, None),
                                   native=sum(theirs), xsched=sum(times))


def both_continuously(session, workers, lengths):
    for worker, kernel_us in zip(workers, lengths):
        worker.send(do="continuous", kernel_us=kernel_us)
    time.sleep(LEAD + session.seconds)
    progresses = [worker.stop()["progress"] for worker in workers]
    # Use the time in which both run: after one has stopped, its enqueued work still runs.
    begin = max(progress[0][0] for progress in progresses) + LEAD / 2
    end = begin + session.seconds
    return [rate(progress, begin, end) for progress in progresses]


# ---- figure 6 ----

def suspend(session):
    """Figure 6: from the call until the GPU stops, and back."""
    for kernel_us, level in ((20, 2), (200, 2), (1000, 2), (10000, 3)):
        case = f"suspend, level {level}, kernels of {kernel_us} µs"
        with session.step("6", case, 90), session.server():
            worker = session.kernels("--level", level, "--scheduler", "APP", scheduled=True)
            session.ready([worker])
            tries = int(25 * session.seconds)
            answer = worker.ask(do="suspend", kernel_us=kernel_us, tries=tries, level=level)
            failures = [answer[name] for name in ("never_stopped", "never_resumed")]
            session.report.add("6", case, "tries that never stopped or never resumed", sum(failures), (0, 0), details=answer)
            stopped, resumed = answer["stopped_us"], answer["resumed_us"]
            if level == 2:
                session.report.add("6", case, "p99 − one kernel, µs", p99(stopped) - kernel_us, (None, 60), xsched=summary(stopped))
            else:
                session.report.add("6", case, "last at work, µs p99", p99(stopped), (None, 1200), xsched=summary(stopped))
            session.report.add("6", case, "resumed, µs p99", p99(resumed), (None, 100) if level == 2 else None,
                               xsched=summary(resumed))
    case = "first launch beside kernels of 10 ms, level 3"
    with session.step("6", case, limit(session, 3)), session.server():
        task = {"kernel_us": 20, "kernels": 1, "rate_hz": 50, "watch_start": True}
        _, native, ours = measure_beside(session, task, 10000)
        session.report.add("6", case, "at work after, µs p99", p99(ours.starts), (None, 350), native=summary(native.starts),
                           xsched=summary(ours.starts), details={"native_us": native.starts, "xsched_us": ours.starts})
