"""What the stages of the GPU benchmarks share: programs native and under XSched, a server of their own, steps that may fail."""
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
    """A step cannot be done here, and that is no failure."""


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
        """So many seconds from now for all waits."""
        self._deadline = time.monotonic() + seconds

    @contextlib.contextmanager
    def step(self, figure, case, seconds):
        """Has so many seconds for all its waits. What fails in it is recorded, and the next step goes on."""
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
        """Without a chance to say goodbye."""
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
        """The path of a file that is there for as long as the session, with one page of zeros. In memory: a driver does not
        pin the pages of files on a disk."""
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
        """torch_task.py with these jobs built."""
        worker = self._start([sys.executable, str(HERE / "torch_task.py")], options, scheduled)
        worker.send(do="prepare", jobs=jobs)
        return worker

    def ready(self, *groups):
        """Waits for programs that were started together, and sees to it that each is what it was started as."""
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
    def server(self, policy="HPF"):
        """A server for what is started `scheduled` inside."""
        self._servers += 1
        self._socket = str(pathlib.Path(self._folder.name) / f"server{self._servers}.sock")
        try:
            self.start_server(policy)
            yield
        finally:
            # First its clients: none is to be seen without a server.
            self.close_workers()
            self.end_server()
            self._socket = None

    def start_server(self, policy):
        """At the socket that there is; `server()` ends it."""
        ready, theirs = os.pipe()
        self.log.write(f"--- xserver, {policy}\n")
        self.log.flush()
        self.server_process = subprocess.Popen([str(self.binaries / "xserver"), "--user", "--socket", self._socket, "--policy", policy,
                                                "--log-level", "info", "--ready-fd", str(theirs)],
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
