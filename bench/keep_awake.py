#!/usr/bin/env python3
"""Runs a command while no core of this machine sleeps for long:

  keep_awake.py COMMAND [ARGUMENT…]

A core that has slept for long takes tens of microseconds to wake (above all in a virtual machine), and is slow at first. A program that is
alone on the machine has this delay at every task. Beside a busy program it has not, so it would seem faster there. To compare fairly, a
process of the idle class wakes each core 20,000 times a second in every case.

It does not keep the core busy: when Linux looks for a free core for a thread that wakes, and all cores seem busy, it soon stops looking.
Then threads share a core, and one of them waits for up to 4 ms, until the next tick.
"""
import contextlib
import ctypes
import os
import subprocess
import sys
import time

PERIOD = 50e-6
PR_SET_TIMERSLACK = 29


def _wake(core):
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(1))  # otherwise, it sleeps 50 µs longer
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(1000):
            time.sleep(PERIOD)


@contextlib.contextmanager
def awake_cores():
    wakers = []
    for core in os.sched_getaffinity(0):
        child = os.fork()
        if child == 0:
            try:
                _wake(core)
            finally:
                os._exit(0)
        wakers.append(child)
    try:
        yield
    finally:
        for child in wakers:
            os.kill(child, 9)
            os.waitpid(child, 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with awake_cores():
        status = subprocess.run(sys.argv[1:]).returncode
    sys.exit(status if status >= 0 else 128 - status)
