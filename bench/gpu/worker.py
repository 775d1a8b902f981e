"""A measured program that keeps running and gets its commands one by one: lines of JSON in, lines of JSON out.

Two such programs can alternate within a second, which cancels slow changes (clocks, temperature). No program is measured while it
starts. gpu_task and torch_task.py use this protocol.
"""
import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time


class WorkerError(Exception):
    pass


class Worker:
    """The controlling end. Every wait ends at `deadline()`, a time.monotonic()."""

    def __init__(self, command, environment, log, deadline):
        self.name = " ".join(command)
        self.deadline = deadline
        self._unread = b""
        log.write(f"--- {self.name}\n")
        log.flush()
        self._log = log
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                         env=environment, start_new_session=True)
        self.pid = self._process.pid  # the program's own: xsched run becomes it

    def send(self, **command):
        try:
            self._process.stdin.write((json.dumps(command) + "\n").encode())
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerError(f"{self.name}: ended early ({error})") from error

    def receive(self):
        while True:
            line = self._line()
            if not line.startswith(b"{"):  # output of libraries
                self._log.write(line.decode(errors="replace") + "\n")
                continue
            answer = json.loads(line)
            if "error" in answer:
                raise WorkerError(f"{self.name}: {answer['error']}")
            return answer["ok"]

    def ask(self, **command):
        self.send(**command)
        return self.receive()

    def stop(self):
        """Ends a command that runs until it is stopped. Returns its answer."""
        self.send(do="stop")
        return self.stopped()

    def stopped(self):
        """The answer of a command that was asked to stop. Of several commands, ask all first: one may wait for another."""
        answer = self.receive()
        self.receive()
        return answer

    def tell_end(self):
        """Closes its input: it ends after the present command."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def close(self):
        self.tell_end()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._kill_all()
        self._process.stdout.close()

    def kill(self):
        self._kill_all()
        self._process.stdin.close()
        self._process.stdout.close()

    def signal(self, number):
        self._process.send_signal(number)

    def _kill_all(self):
        """The program, and what it has started itself."""
        with contextlib.suppress(ProcessLookupError):  # it has ended, and with it all that it had started
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _line(self):
        output = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            left = self.deadline() - time.monotonic()
            if left <= 0 or not select.select([output], [], [], left)[0]:
                raise WorkerError(f"{self.name}: no answer in time")
            data = os.read(output, 1 << 16)
            if not data:
                raise WorkerError(f"{self.name}: ended with status {self._process.wait()}")
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return line


class Commands:
    """The controlled end: iterates over the commands, answers them, and knows whether another one waits."""

    def __init__(self):
        self._lines = queue.Queue()
        # Output of libraries must not get between the answers.
        self._answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in sys.stdin:
            self._lines.put(line)
        self._lines.put(None)

    def interrupted(self):
        return not self._lines.empty()

    def serve(self, run):
        while (line := self._lines.get()) is not None:
            try:
                answer = {"ok": run(json.loads(line))}
            except Exception as error:  # whatever a framework raises is the measurement's result
                answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
            self._answers.write(json.dumps(answer) + "\n")
