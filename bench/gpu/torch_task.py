#!/usr/bin/env python3
"""What the benchmarks with PyTorch run. Commands and answers as with gpu_task; a job is described in torch_job.py:

  {"do": "rate", "job", "seconds"}                            → {"per_second"}: samples
  {"do": "task", "job", "rate_hz", "seconds"}                 → {"begin", "end", "latency_ms": […]}
  {"do": "continuous", "job"}, until the next line            → {"progress": [[time, samples], …]}
  {"do": "two_threads", "high", "low", "rate_hz", "seconds", "lead_seconds"}  → {"task": …, "continuous": …}
  {"do": "prepare", "jobs"}                                   → {"under_xsched"}; so that nothing is built in a measured time
"""
import contextlib
import json
import pathlib
import sys
import threading
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_job import Job  # noqa: E402
from worker import Commands  # noqa: E402
from xsched_api import present, set_priority  # noqa: E402

AHEAD = 2  # steps enqueued ahead by a continuous job

commands = Commands()
jobs = {}


def job_of(description):
    """Built once. One that cannot be built fails each command that needs it, and no other."""
    key = json.dumps(description, sort_keys=True)
    if key not in jobs:
        try:
            jobs[key] = Job(**description)
        except Exception as error:
            jobs[key] = error
    if isinstance(jobs[key], Exception):
        raise jobs[key]
    return jobs[key]


def run_continuously(job, stop):
    """Steps without a pause until stop(); [[time, samples], …]."""
    events = [torch.cuda.Event(blocking=True) for _ in range(AHEAD)]
    progress = [[time.monotonic(), 0]]
    samples = turn = 0
    with torch.cuda.stream(job.stream):
        while not stop():
            event = events[turn % AHEAD]
            if turn >= AHEAD:
                event.synchronize()
                samples += job.batch
                if time.monotonic() - progress[-1][0] >= 0.01:
                    progress.append([time.monotonic(), samples])
            job.run()
            event.record(job.stream)
            turn += 1
        job.stream.synchronize()
    progress.append([time.monotonic(), turn * job.batch])
    return {"progress": progress}


def run_rate(job, seconds):
    end = time.monotonic() + seconds
    with torch.cuda.stream(job.stream):
        job.run()
        job.stream.synchronize()
    begin = time.monotonic()
    progress = run_continuously(job, lambda: time.monotonic() >= end)["progress"]
    last, samples = progress[-1]
    return {"per_second": samples / (last - begin)}


def run_task(job, rate_hz, seconds):
    period = 1 / rate_hz
    latencies = []
    first = time.monotonic()
    arrival = first + period
    with torch.cuda.stream(job.stream):
        while arrival < first + seconds:
            time.sleep(max(0, arrival - time.monotonic()))
            begin = time.monotonic()
            job.run()
            job.stream.synchronize()
            latencies.append((time.monotonic() - begin) * 1e3)
            # A task that comes late is not made up for: the next one comes at its time.
            while arrival < time.monotonic():
                arrival += period
    return {"begin": first, "end": time.monotonic(), "latency_ms": latencies}


def run_two_threads(high, low, rate_hz, seconds, lead_seconds):
    if present():
        set_priority(high.stream, 10)
    done = threading.Event()
    result, errors = {}, []

    def continuous():
        try:
            result.update(run_continuously(low, done.is_set))
        except Exception as error:  # told by the thread that answers
            errors.append(error)

    thread = threading.Thread(target=continuous)
    thread.start()
    try:
        time.sleep(lead_seconds)
        task = run_task(high, rate_hz, seconds)
    finally:
        done.set()
        thread.join()
    if errors:
        raise errors[0]
    return {"task": task, "continuous": result}


def run(command):
    what = command["do"]
    if what == "stop":
        return {}
    if what == "two_threads":
        return run_two_threads(job_of(command["high"]), job_of(command["low"]), command["rate_hz"], command["seconds"],
                               command["lead_seconds"])
    if what == "prepare":
        for job in command["jobs"]:
            with contextlib.suppress(Exception):
                job_of(job)
        return {"under_xsched": present()}
    job = job_of(command["job"])
    if what == "rate":
        return run_rate(job, command["seconds"])
    if what == "task":
        return run_task(job, command["rate_hz"], command["seconds"])
    if what == "continuous":
        return run_continuously(job, commands.interrupted)
    raise ValueError(f"unknown command {what}")


torch.backends.cudnn.benchmark = False
commands.serve(run)
