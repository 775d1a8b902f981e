#!/usr/bin/env python3
"""Two streams of one PyTorch program with different priorities: a batch job in a thread, and an urgent task beside it. For ROCm and CUDA.

  xsched run -- python3 streams.py     PyTorch's own launches are scheduled
  python3 streams.py                   nothing is scheduled

XSched's Python package: python3-xsched, the wheel, or PYTHONPATH=<prefix>/share/xsched/python.
"""
import threading
import time

import torch
import xsched

TASKS, AHEAD = 100, 4

xsched.set_scheduler(xsched.Scheduler.LOCAL, xsched.Policy.HIGHEST_PRIORITY_FIRST)
done = threading.Event()


def batch(stream):
    matrix = torch.randn(4096, 4096, device="cuda")
    with torch.cuda.stream(stream):
        while not done.is_set():
            for _ in range(AHEAD):
                matrix = torch.tanh(matrix @ matrix)
            # On HIP, a thread that launches on a held stream waits. It does so without Python's lock, so other threads
            # go on.
            stream.synchronize()


def task(stream, matrix):
    begin = time.perf_counter()
    with torch.cuda.stream(stream):
        for _ in range(5):
            matrix = torch.tanh(matrix @ matrix)
        stream.synchronize()
    return (time.perf_counter() - begin) * 1e3


urgent_stream, batch_stream = torch.cuda.Stream(), torch.cuda.Stream()
matrix = torch.randn(512, 512, device="cuda")
torch.cuda.synchronize()
task(urgent_stream, matrix)
alone = sorted(task(urgent_stream, matrix) for _ in range(TASKS))
with xsched.XSchedQueue(urgent_stream, priority=10), xsched.XSchedQueue(batch_stream, priority=0):
    thread = threading.Thread(target=batch, args=(batch_stream,))
    thread.start()
    beside = []
    for _ in range(TASKS):
        time.sleep(0.01)
        beside.append(task(urgent_stream, matrix))
    done.set()
    thread.join()
beside.sort()
print(f"the task: p50 {alone[TASKS // 2]:.2f} ms alone, {beside[TASKS // 2]:.2f} ms beside the batch job")
