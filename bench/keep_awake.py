#!/usr/bin/env python3
"""Runs a command while no core of this machine sleeps:

  keep_awake.py COMMAND [ARGUMENT…]

A sleeping core takes tens of microseconds to wake (above all in a virtual machine), and is slow at first. A program that is alone on
the machine has this delay at every task. Beside a busy program it has not, so it would seem faster there. To compare fairly, each core
runs a loop of the idle class in every case. That loop gives way to anything else at once.
"""
import contextlib
import os
import subprocess
import sys


def _spin(core):
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(100_000):
            pass


@contextlib.contextmanager
def awake_cores():
    spinners = []
    for core in os.sched_getaffinity(0):
        child = os.fork()
        if child == 0:
            try:
                _spin(core)
            finally:
                os._exit(0)
        spinners.append(child)
    try:
        yield
    finally:
        for child in spinners:
            os.kill(child, 9)
            os.waitpid(child, 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with awake_cores():
        status = subprocess.run(sys.argv[1:]).returncode
    sys.exit(status if status >= 0 else 128 - status)
