"""Runs a test as a separate process with a time limit, and ends everything that it has started.

Becomes the parent of the test's orphaned processes (PR_SET_CHILD_SUBREAPER). So even a program that hangs in its own session is found and
ended.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
TIMED_OUT = "timed out"


class Supervisor:
    def __init__(self):
        self._running = {}
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")

    def run(self, command, log, seconds, environment=None):
        """Returns its exit status, or TIMED_OUT. Its output goes to the file `log`."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   env=environment, start_new_session=True)
        self._running[process.pid] = process
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            del self._running[process.pid]

    def sweep(self):
        """Ends all remaining processes. REQUIRES: no test runs. Gives up after some seconds if a driver keeps a process from ending."""
        deadline = time.monotonic() + 10
        while (left := _children()) and time.monotonic() < deadline:
            for child in left:
                os.kill(child, signal.SIGKILL)
            for child in left:
                _reap(child, deadline)

    def stop_all(self):
        for process in list(self._running.values()):
            process.kill()


def _children():
    """Processes whose parent is this one."""
    children = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            children.append(int(stat.parent.name))
    return children


def _reap(child, deadline):
    while time.monotonic() < deadline:
        try:
            if os.waitpid(child, os.WNOHANG)[0] == child:
                return
        except ChildProcessError:
            return
        time.sleep(0.01)
