"""What the stages of the GPU benchmarks share: they start programs natively and under XSched, and servers, and have steps that may
fail."""
import contextlib
import itertools
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import traceback

from worker import Worker, WorkerError

HERE = pathlib.Path(__file__).resolve().parent


class Skipped(Exception):
    """A step is not possible on this machine. This is not a failure."""


class Session:
    def __init__(self, binaries, seconds, report, log):
        self.binaries = binaries
        self.seconds = seconds  # of one measurement
        self.report = report
        self.log = log
        self.calibration = None
        self.extra_environment = {}  # a stage's own
        self._deadline = 0.0
        self._workers = []
        self._folder = tempfile.TemporaryDirectory(prefix="xsched-bench-")
        self._shared = tempfile.TemporaryDirectory(prefix="xsched-bench-", dir="/dev/shm")
        self._servers = 0
        self._socket = None
        self.server_process = None
        self._files = itertools.count()

    # ---- steps ----

    def give(self, seconds):
        """Sets the deadline for all waits."""
        self._deadline = time.monotonic() + seconds

    @contextlib.contextmanager
    def step(self, figure, case, seconds):
        """A step with a time limit for all its waits. A failure is recorded, and the next step follows."""
        begin = time.monotonic()
        self.give(seconds)
        print(f"== {figure}: {case}", flush=True)
        try:
            yield
        except Skipped as reason:
            self.report.note(figure, case, f"skipped: {reason}")
        except Exception as error:  # recorded, whatever it is
            traceback.print_exc(file=self.log)
            self.report.note(figure, case, f"failed: {type(error).__name__}: {error}"[:500])
        finally:
            self.close_workers()
            self.log.flush()
            print(f"   {time.monotonic() - begin:.0f} s", flush=True)

    def close_workers(self):
        for worker in self._workers:
            worker.tell_end()
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def kill(self, worker):
        """Kills it with SIGKILL."""
        worker.kill()
        self._workers.remove(worker)

    def left(self):
        return max(1.0, self._deadline - time.monotonic())

    # ---- programs ----

    def environment(self, scheduled):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("XSCHED_") and name != "LD_PRELOAD"}
        environment.update(PYTHONUNBUFFERED="1", XSCHED_BENCH_BIN=str(self.binaries), **self.extra_environment)
        if scheduled:
            if self._socket is None:
                raise WorkerError("no server")
            environment["XSCHED_SOCKET"] = self._socket
        return environment

    def new_file(self):
        """The path of a file with one page of zeros, which exists until the session ends. It is in memory, because drivers do not pin
        pages of files on a disk."""
        path = pathlib.Path(self._shared.name) / f"count{next(self._files)}"
        path.write_bytes(bytes(4096))
        return path

    def prefix(self, *options):
        return [str(self.binaries / "xsched"), "run", "--no-server", *options, "--"]

    def kernels(self, *options, scheduled=False):
        """gpu_task, natively or, with `scheduled`, under `xsched run` with these options."""
        worker = self._start([str(self.binaries / "gpu_task")], options, scheduled)
        if self.calibration is not None:
            worker.send(do="use", **self.calibration)
        return worker

    def torch(self, *options, jobs, scheduled=False):
        """Starts torch_task.py, and lets it build these jobs."""
        worker = self._start([sys.executable, str(HERE / "torch_task.py")], options, scheduled)
        worker.send(do="prepare", jobs=jobs)
        return worker

    def llama(self, *run_options, model, options, scheduled=False):
        """Starts llama_task.py, and lets it start a llama-server with these options."""
        worker = self._start([sys.executable, str(HERE / "llama_task.py")], run_options, scheduled)
        worker.send(do="prepare", model=model, options=options)
        return worker

    def ready(self, *groups):
        """Waits for programs that were started together, and checks that each is under XSched or native as requested."""
        for worker in itertools.chain(*groups):
            if worker.receive()["under_xsched"] != worker.scheduled:
                raise WorkerError(f"{worker.name}: XSched is {'not ' if worker.scheduled else ''}in the process")

    def _start(self, command, options, scheduled):
        worker = Worker((self.prefix(*map(str, options)) if scheduled else []) + command, self.environment(scheduled), self.log,
                        lambda: self._deadline)
        worker.scheduled = scheduled
        self._workers.append(worker)
        return worker

    @contextlib.contextmanager
    def server(self, policy="HPF", *options):
        """Starts a server for the programs that are started as `scheduled` inside the block."""
        self._servers += 1
        self._socket = str(pathlib.Path(self._folder.name) / f"server{self._servers}.sock")
        try:
            self.start_server(policy, *options)
            yield
        finally:
            # End its clients first, so that none runs without a server.
            self.close_workers()
            self.end_server()
            self._socket = None

    def start_server(self, policy, *options):
        """Starts another server at the same socket. `server()` ends it."""
        ready, theirs = os.pipe()
        self.log.write(f"--- xserver, {policy}\n")
        self.log.flush()
        self.server_process = subprocess.Popen([str(self.binaries / "xserver"), "--user", "--socket", self._socket, "--policy", policy,
                                                "--log-level", "info", "--ready-fd", str(theirs), *options],
                                               stdout=self.log, stderr=self.log, pass_fds=[theirs],
                                               env=self.environment(False))
        os.close(theirs)
        try:
            if not select.select([ready], [], [], 10)[0] or not os.read(ready, 1):
                raise WorkerError("the server did not start")
        finally:
            os.close(ready)

    def end_server(self):
        self.server_process.terminate()
        try:
            self.server_process.wait(10)
        except subprocess.TimeoutExpired:
            self.server_process.kill()
            self.server_process.wait()
