#!/usr/bin/env python3
"""Tries the Python package with PyTorch on a GPU. Run it under `xsched run`; PYTHONPATH names the package's folder.

Writes a line {"check", "result"} for each check; "ok", or what is wrong.
"""
import asyncio
import concurrent.futures
import json
import os
import time

import torch

import xsched
import xsched.torch

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def equal(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r} is not {wanted!r}")


def priorities():
    """The priorities of this process's queues, as the server sees them."""
    return sorted(queue.priority for queue in xsched.queues() if queue.pid == os.getpid())


def eventually(read, wanted):
    """Hints travel to the server."""
    end = time.monotonic() + 2
    while read() != wanted and time.monotonic() < end:
        time.sleep(0.005)
    equal(read(), wanted)


@check
def a_block_holds_for_the_default_stream():
    number = torch.zeros(1, device="cuda")
    number.add_(1)
    with xsched.priority(7):
        number.add_(1)
        eventually(priorities, [7])
    eventually(priorities, [0])
    equal(number.item(), 2)


@check
def a_block_holds_for_the_current_stream_and_no_other():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.zeros(1, device="cuda").add_(1)
        with xsched.priority(5):
            eventually(priorities, [0, 5])
    eventually(priorities, [0, 0])


@check
def a_stream_has_its_own_priority():
    with xsched.torch.stream(priority=9):
        torch.zeros(1, device="cuda").add_(1)
        eventually(lambda: priorities()[-1], 9)


@check
def a_block_may_surround_a_capture_and_its_replay():
    number = torch.zeros(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with xsched.priority(3):
        with torch.cuda.graph(graph):
            number.add_(1)
        for _ in range(5):
            graph.replay()
    torch.cuda.synchronize()
    equal(number.item(), 5)


@check
def tasks_overlap_each_with_its_own_stream():
    seen = {}

    async def task(priority):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            number = torch.zeros(1, device="cuda")
        with xsched.priority(priority, stream=stream):
            for _ in range(20):
                with torch.cuda.stream(stream):
                    number.add_(1)
                await asyncio.sleep(0.001)
            seen[priority] = priority in priorities()
        stream.synchronize()
        equal(number.item(), 20)

    async def both():
        await asyncio.gather(task(21), task(-21))

    asyncio.run(both())
    equal(seen, {21: True, -21: True})
    eventually(lambda: {21, -21} & set(priorities()), set())


def in_a_new_thread(do):
    """In a thread that has not used the GPU. Raises what `do` raises."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(do).result()


@check
def a_thread_may_enter_a_block_first_of_all():
    def use():
        with xsched.priority(13):
            number = torch.ones(1, device="cuda")
            eventually(lambda: 13 in priorities(), True)
        equal(number.item(), 1)
    in_a_new_thread(use)
    eventually(lambda: 13 in priorities(), False)


@check
def a_thread_may_make_a_queue_over_an_unused_stream_first_of_all():
    stream = torch.cuda.Stream()

    def use():
        with xsched.XSchedQueue(stream, priority=8):
            eventually(lambda: 8 in priorities(), True)
    in_a_new_thread(use)


@check
def a_stream_is_scheduled_after_its_queue_was_closed_although_an_event_was_recorded_on_it():
    stream = torch.cuda.Stream(priority=-1)
    with xsched.XSchedQueue(stream, priority=8):
        torch.cuda.Event().record(stream)
    with torch.cuda.stream(stream):
        torch.ones(1, device="cuda").add_(1)
        with xsched.priority(6):
            eventually(lambda: 6 in priorities(), True)
    stream.synchronize()


@check
def a_held_stream_runs_nothing_and_goes_on_afterwards():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        number = torch.zeros(1, device="cuda")
    stream.synchronize()
    with xsched.XSchedQueue(stream, priority=0) as queue:
        with queue.held():
            with torch.cuda.stream(stream):
                number.add_(1)
            done = torch.cuda.Event()
            done.record(stream)
            time.sleep(0.05)
            equal(done.query(), False)
        stream.synchronize()
    equal(number.item(), 1)


@check
def a_hint_for_a_process_reaches_its_streams():
    xsched.hint(os.getpid(), priority=4)
    eventually(lambda: set(priorities()), {4})


def main():
    for function in CHECKS:
        try:
            function()
            result = "ok"
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        print(json.dumps({"check": function.__name__, "result": result}), flush=True)


main()
