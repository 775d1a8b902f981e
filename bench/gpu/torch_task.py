#!/usr/bin/env python3
"""The program of the benchmarks with PyTorch. Commands and answers are like gpu_task's. torch_job.py describes jobs; those with
"kernel_us" are in kernel_job.py, those with "prompt_tokens" in language_model.py, and those with "gradients_mb" in gang_job.py (they
run continuously only):

  {"do": "rate", "job", "seconds"}                            → {"per_second"}: samples; with "cores", all its threads keep to these
  {"do": "task", "job", "rate_hz", "seconds"}                 → {"begin", "end", "latency_ms": […]}; of a language model also
                                                                {"prompt_ms", "step_ms": […]}: until the first token, and each next one
  {"do": "continuous", "job"}, until the next line            → {"progress": [[time, samples], …]}
  {"do": "ahead", "job", "count_file"}                        → {}, at once: steps in a thread that never waits for them, until the
                                                                program ends; the file's second word counts those that have run
  {"do": "two_threads", "high", "low", "rate_hz", "seconds", "lead_seconds"}  → {"task": …, "continuous": …}
  {"do": "suspend", "job", "tries", "pause_seconds"}          → {"stopped_ms": […], "ran_while_suspended"}, by XSched's API
  {"do": "prepare", "jobs"}                                   → {"under_xsched"}; so that nothing is built in a measured time
  {"do": "calibrate"}                                         → {"elements_per_us"}, of kernel_job.py
  {"do": "operators", "count", "core"}                        → {"operator_ns"}: one eager operator on 16 elements, on one core
"""
import contextlib
import json
import os
import pathlib
import sys
import threading
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kernel_job  # noqa: E402
import xsched_api  # noqa: E402
from torch_job import Job  # noqa: E402
from worker import Commands  # noqa: E402

AHEAD = 2  # steps enqueued ahead by a continuous job

commands = Commands()
jobs = {}
ahead = []


def kind_of(description):
    if "kernel_us" in description:
        return kernel_job.KernelJob
    if "prompt_tokens" in description:
        # Not every PyTorch has all that a language model needs.
        from language_model import LanguageModelJob
        return LanguageModelJob
    if "gradients_mb" in description:
        from gang_job import GangJob
        return GangJob
    return Job


def job_of(description):
    """Builds each job once. If one cannot be built, only the commands that need it fail."""
    key = json.dumps(description, sort_keys=True)
    if key not in jobs:
        try:
            jobs[key] = kind_of(description)(**description)
        except Exception as error:
            jobs[key] = error
    if isinstance(jobs[key], Exception):
        raise jobs[key]
    return jobs[key]


def run_continuously(job, stop, every=0.01):
    """Runs steps without a pause until stop(). Records [[time, samples], …] at an interval."""
    progress = [[time.monotonic(), 0]]
    extend_continuously(progress, job, stop, every)
    return {"progress": progress}


def extend_continuously(progress, job, stop, every):
    events = [torch.cuda.Event(blocking=True) for _ in range(AHEAD)]
    samples = turn = 0
    with torch.cuda.stream(job.stream):
        while turn == 0 or not stop():
            event = events[turn % AHEAD]
            if turn >= AHEAD:
                event.synchronize()
                samples += job.batch
                if time.monotonic() - progress[-1][0] >= every:
                    progress.append([time.monotonic(), samples])
            job.run()
            event.record(job.stream)
            turn += 1
        job.stream.synchronize()
    progress.append([time.monotonic(), turn * job.batch])


def run_rate(job, seconds):
    with torch.cuda.stream(job.stream):
        job.run()
        job.stream.synchronize()
    begin = time.monotonic()
    progress = run_continuously(job, lambda: time.monotonic() >= begin + seconds)["progress"]
    last, samples = progress[-1]
    return {"per_second": samples / (last - begin)}


def at_rate(work, rate_hz, seconds):
    """Calls work() at a fixed rate. Returns when that began, when it ended, and how many milliseconds each call took."""
    period = 1 / rate_hz
    latencies = []
    first = time.monotonic()
    arrival = first + period
    while arrival < first + seconds:
        time.sleep(max(0, arrival - time.monotonic()))
        begin = time.monotonic()
        work()
        latencies.append((time.monotonic() - begin) * 1e3)
        # A late task does not delay the next one, which comes at its time.
        while arrival < time.monotonic():
            arrival += period
    return {"begin": first, "end": time.monotonic(), "latency_ms": latencies}


def run_task(job, rate_hz, seconds):
    def step():
        job.run()
        job.stream.synchronize()

    with torch.cuda.stream(job.stream):
        return at_rate(step, rate_hz, seconds)


def run_requests(job, rate_hz, seconds):
    prompt_ms, step_ms = [], []

    def request():
        first, others = job.request()
        prompt_ms.append(first)
        step_ms.extend(others)

    return {**at_rate(request, rate_hz, seconds), "prompt_ms": prompt_ms, "step_ms": step_ms}


class Continuously(threading.Thread):
    """A job that runs in a separate thread during the block."""

    def __init__(self, job, every=0.01):
        super().__init__()
        self.job = job
        self.every = every
        self.progress = [[time.monotonic(), 0]]
        self._done = threading.Event()
        self._error = None

    def run(self):
        try:
            extend_continuously(self.progress, self.job, self._done.is_set, self.every)
        except Exception as error:  # reported by the thread that answers
            self._error = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self.join()
        if self._error is not None:
            raise self._error


class Ahead(threading.Thread):
    """Runs steps and never waits for the device. The device counts them in a file."""

    def __init__(self, job, count_file):
        super().__init__(daemon=True)
        self.job = job
        self.shown = torch.from_file(count_file, shared=True, size=512, dtype=torch.int64)
        torch.cuda.check_error(torch.cuda.cudart().cudaHostRegister(self.shown.data_ptr(), 4096, 0))
        self.count = torch.zeros(1, dtype=torch.int64, device="cuda")
        torch.cuda.synchronize()

    def run(self):
        with torch.cuda.stream(self.job.stream):
            while True:
                self.job.run()
                self.count += 1
                self.shown[1:2].copy_(self.count, non_blocking=True)


def run_two_threads(high, low, rate_hz, seconds, lead_seconds):
    with Continuously(low) as continuous:
        time.sleep(lead_seconds)
        task = run_task(high, rate_hz, seconds)
    return {"task": task, "continuous": {"progress": continuous.progress}}


def run_suspend(job, tries, pause_seconds):
    """How long it takes until a full stream stops after a suspend, and whether it stays stopped until it is resumed."""
    with torch.cuda.stream(job.stream):
        job.run()
        job.stream.synchronize()
    queue = xsched_api.queue_of(job.stream)
    stopped, ran = [], 0
    with Continuously(job, every=0) as continuous:
        for index in range(tries):
            time.sleep(pause_seconds * (1 + index % 7 / 7))
            begin = time.monotonic()
            xsched_api.suspend(queue)
            stopped.append((time.monotonic() - begin) * 1e3)
            try:
                before = len(continuous.progress)
                time.sleep(0.02 + pause_seconds)
                # The thread may notice late that work which it enqueued ahead has finished.
                ran += max(0, len(continuous.progress) - before - AHEAD)
            finally:
                xsched_api.resume(queue)
    return {"stopped_ms": stopped, "ran_while_suspended": ran}


def keep_to(cores):
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread), cores)


def run_operators(count, core):
    os.sched_setaffinity(threading.get_native_id(), {core})
    add = torch.zeros(16, device="cuda").add_
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(count):
        add(0)
    torch.cuda.synchronize()
    return {"operator_ns": (time.perf_counter_ns() - begin) / count}


def run(command):
    what = command["do"]
    if what == "stop":
        return {}
    if what == "two_threads":
        return run_two_threads(job_of(command["high"]), job_of(command["low"]), command["rate_hz"], command["seconds"],
                               command["lead_seconds"])
    if what == "prepare":
        torch.cuda.init()
        for job in command["jobs"]:
            with contextlib.suppress(Exception):
                job_of(job)
        return {"under_xsched": xsched_api.present()}
    if what == "calibrate":
        return {"elements_per_us": kernel_job.calibrate()}
    if what == "operators":
        return run_operators(command["count"], command["core"])
    job = job_of(command["job"])
    if what == "ahead":
        ahead.append(Ahead(job, command["count_file"]))
        ahead[-1].start()
        return {}
    if what == "rate":
        if "cores" in command:
            keep_to(command["cores"])
        return run_rate(job, command["seconds"])
    if what == "task":
        run_at_rate = run_requests if "prompt_tokens" in command["job"] else run_task
        return run_at_rate(job, command["rate_hz"], command["seconds"])
    if what == "continuous":
        if "gradients_mb" in command["job"]:
            return {"progress": job.run_continuously(commands.interrupted, time.monotonic)}
        return run_continuously(job, commands.interrupted)
    if what == "suspend":
        return run_suspend(job, command["tries"], command["pause_seconds"])
    raise ValueError(f"unknown command {what}")


torch.backends.cudnn.benchmark = False
commands.serve(run)
if ahead:
    os._exit(0)  # their threads cannot be stopped
