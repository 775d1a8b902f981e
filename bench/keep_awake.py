#!/usr/bin/env python3
"""Runs a command while no core of this machine falls asleep:

  keep_awake.py COMMAND [ARGUMENT…]

A core that sleeps takes tens of microseconds to wake (in a virtual machine above all) and starts slowly. A program that is
alone on the machine pays for that at every task; beside a busy one it does not, and would look faster there than alone. So
each core runs a loop of the idle class, which gives way to anything else at once, in every case that is compared.
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
