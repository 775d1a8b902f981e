"""Figure 8: no program is held forever. Programs launch ahead and never wait, with equal and with different priorities. An urgent one
starts and ends. Training runs beside a server. Programs and servers are killed, stopped and started at random.

The GPU counts each program's work in a file. So the count does not depend on the program, XSched or the server."""
import functools
import itertools
import mmap
import random
import signal
import statistics
import struct
import threading
import time

from kernel_stages import TASK
from torch_stages import STARTING

FIGURE = "8"
KERNEL_US = 2000
SETTLE = 1.0  # seconds between a change of the running programs and a measurement
WINDOW = 3.0  # seconds of one measurement of a rate
TRAINING_WINDOW = 12.0  # the same for training: it does six steps/s, so one step is less than 2 %
CHAOS = 36  # seconds of random events for each second of --seconds: some five minutes


class Counted:
    """A program that never waits, and the GPU's count of its finished kernels."""

    def __init__(self, session, worker, name):
        self.session, self.worker, self.name = session, worker, name
        self.path = session.new_file()
        with open(self.path, "r+b") as file:
            self._words = mmap.mmap(file.fileno(), 4096)

    def start(self, **what):
        self.worker.ask(do="ahead", count_file=str(self.path), **what)

    def count(self):
        return struct.unpack_from("=q", self._words, 8)[0]

    def kill(self):
        self.session.kill(self.worker)


def kernels_ahead(session, priorities):
    """Starts programs under XSched, one for each priority, that launch kernels and never wait."""
    workers = [session.kernels("-p", priority, scheduled=True) for priority in priorities]
    session.ready(workers)
    programs = [Counted(session, worker, f"priority {priority}") for worker, priority in zip(workers, priorities)]
    for program in programs:
        program.start(kernel_us=KERNEL_US)
    return programs


def rates(programs, seconds=WINDOW, settle=SETTLE):
    """Kernels per second of each program, by the GPU's count."""
    time.sleep(settle)
    begin, before = time.monotonic(), [program.count() for program in programs]
    time.sleep(seconds)
    counts = [program.count() for program in programs]
    elapsed = time.monotonic() - begin
    return [(count - then) / elapsed for count, then in zip(counts, before)]


def native_rate(session, count=1):
    """Kernels per second of `count` programs together, without XSched. Switching between them takes some of the device's time."""
    workers = [session.kernels() for _ in range(count)]
    session.ready(workers)
    programs = [Counted(session, worker, "native") for worker in workers]
    for program in programs:
        program.start(kernel_us=KERNEL_US)
    total = sum(rates(programs))
    for program in programs:
        program.kill()
    return total


def add(session, case, what, value, goal, native=None, xsched=None):
    session.report.add(FIGURE, case, what, value, goal, native=native, xsched=xsched)


@functools.cache
def alone_rate(session):
    """Kernels per second of one program alone, without XSched. Measured once."""
    with session.step(FIGURE, "one program alone, native", 60):
        alone = native_rate(session)
        session.report.add(FIGURE, "one program alone", "kernels/s", alone, native=alone)
        return alone


def three_classes(session):
    """An urgent program that is idle, two equal ones below it, one below these."""
    alone = alone_rate(session)
    case = "three classes, the urgent one idle"
    with session.step(FIGURE, case, 120), session.server():
        urgent = session.kernels("-p", 10, scheduled=True)
        session.ready([urgent])
        # It keeps its stream, and has a kernel of 100 µs every second.
        urgent.send(do="task", kernel_us=100, kernels=1, rate_hz=1, seconds=60)
        together = native_rate(session, 2)
        first, second, low = kernels_ahead(session, (5, 5, 0))
        done = rates([first, second, low], 2 * WINDOW)
        add(session, case, "the two in the middle : native", sum(done[:2]) / together, (0.97, None), together, sum(done[:2]))
        add(session, case, "the slower of the two, % of both", min(done[:2]) / max(sum(done[:2]), 1e-9) * 100, (45, None))
        first.kill()
        second.kill()
        rate, = rates([low], settle=0.3)
        add(session, case, "the lowest, 0.3 s after them : alone", rate / alone, (0.97, None), alone, rate)
        session.kill(urgent)
        rate, = rates([low], settle=0.3)
        add(session, case, "the lowest by itself : alone", rate / alone, (0.97, None), alone, rate)


def launching_ahead(session):
    alone = alone_rate(session)
    for count, different, urgent in itertools.product((2, 3, 8), (False, True), (False, True)):
        launch_ahead(session, alone, count, different, urgent)


def launch_ahead(session, alone, count, different, urgent):
    """`count` programs that never wait. An urgent one starts and ends."""
    case = (f"{count} that never wait, {'different classes' if different else 'equal'}"
            f"{', an urgent one comes and goes' if urgent else ''}")
    with session.step(FIGURE, case, 120), session.server():
        together = alone if different else native_rate(session, count)
        programs = kernels_ahead(session, range(count) if different else [0] * count)
        if urgent:
            visitor = session.kernels("-p", 10, scheduled=True)
            session.ready([visitor])
            latency = visitor.ask(do="task", seconds=WINDOW, **TASK)["latency_ms"]
            add(session, case, "the urgent one's latency, p50 ms", statistics.median(latency), None)
            session.kill(visitor)
        expect_share(session, f"{case}: after it" if urgent else case, together, programs, different)
        while len(programs) > 1:
            programs.pop().kill()  # the most urgent one first
            if different or len(programs) == 1:
                expect_share(session, f"{case}: {len(programs)} left", alone, programs, different)


def expect_share(session, case, native, programs, different):
    done = rates(programs, settle=0.3)
    add(session, case, "all : native", sum(done) / native, (0.97, None), native, sum(done))
    if different:
        add(session, case, "the most urgent : alone", done[-1] / native, (0.97, None), native, done[-1])
    elif len(programs) > 1:
        add(session, case, "the slowest : its share", min(done) * len(done) / max(sum(done), 1e-9), (0.97, None))


def hung_server(session):
    """The server is stopped while a program is held, and then the urgent program ends."""
    alone = alone_rate(session)
    case = "the server hangs"
    with session.step(FIGURE, case, 60), session.server():
        high, = kernels_ahead(session, [5])
        low, = kernels_ahead(session, [0])
        time.sleep(SETTLE)
        session.server_process.send_signal(signal.SIGSTOP)
        try:
            before = low.count()
            begin = time.monotonic()
            high.kill()
            while low.count() == before and time.monotonic() < begin + 5:
                time.sleep(0.001)
            add(session, case, "the held one runs after, ms", (time.monotonic() - begin) * 1e3, (None, 250))
            rate, = rates([low])
            add(session, case, "its rate : alone", rate / alone, (0.97, None), alone, rate)
        finally:
            session.server_process.send_signal(signal.SIGCONT)
        rate, = rates([low])
        add(session, case, "… when the server is back", rate / alone, (0.97, None), alone, rate)


def training(session):
    """Training that never synchronizes, beside a server in eager mode, and one with a graph."""
    # Long kernels: the GPU is behind the program, whose stream is full.
    job = {"model": "resnet50", "batch": 512, "train": True}
    for kind, served in (("eager", {"model": "bert", "batch": 8}), ("a graph", {"model": "resnet152", "batch": 8, "graph": True})):
        case = f"training beside a server, {kind}"
        with session.step(FIGURE, case, 2 * STARTING), session.server():
            trainer, server = session.torch("-p", 0, jobs=[job], scheduled=True), session.torch("-p", 10, jobs=[served],
                                                                                                scheduled=True)
            session.ready([trainer, server])
            program = Counted(session, trainer, "training")
            program.start(job=job)
            before, = rates([program], TRAINING_WINDOW, settle=2)
            server.send(do="task", job=served, rate_hz=20, seconds=TRAINING_WINDOW + 2 * SETTLE)
            beside, = rates([program], TRAINING_WINDOW)
            latency = server.receive()["latency_ms"]
            add(session, case, "the server's latency, p50 ms", statistics.median(latency), None)
            add(session, case, "training beside it : before", beside / before, None, before, beside)
            after, = rates([program], TRAINING_WINDOW, settle=0.3)
            add(session, case, "training after it : before", after / before, (0.97, None), before, after)
            session.kill(server)
            after, = rates([program], TRAINING_WINDOW, settle=0.3)
            add(session, case, "training by itself : before", after / before, (0.97, None), before, after)


class Chaos:
    """Programs under one server, with random events."""

    PRIORITIES = (0, 0, 0, 5, 5, 10)

    def __init__(self, session, seed):
        self.session = session
        self.random = random.Random(seed)
        self.programs = kernels_ahead(session, self.PRIORITIES)
        self.stopped = {}  # program → until when
        self.server_stopped_until = None
        self.policy = "HPF"
        self.last = "start"
        self.done = dict.fromkeys(("kill", "stop", "kill the server", "stop the server", "restart the server"), 0)

    def act(self):
        what = self.random.choices(list(self.done), (6, 6, 1, 2, 1))[0]
        self.done[what] += 1
        index = self.random.randrange(len(self.programs))
        self.last = f"{what}, program {index}, policy {self.policy}"
        if what == "kill":
            program = self.programs[index]
            self.stopped.pop(program, None)
            program.kill()
            self.programs[index], = kernels_ahead(self.session, [self.PRIORITIES[index]])
        elif what == "stop":
            self.programs[index].worker.signal(signal.SIGSTOP)
            self.stopped[self.programs[index]] = time.monotonic() + self.random.uniform(0.1, 1.5)
        elif what == "stop the server":
            self.session.server_process.send_signal(signal.SIGSTOP)
            self.server_stopped_until = time.monotonic() + self.random.uniform(0.2, 1.5)
        else:
            self.server_stopped_until = None
            process = self.session.server_process
            process.send_signal(signal.SIGCONT)
            if what == "kill the server":
                process.kill()
                process.wait()
            else:
                self.session.end_server()
            time.sleep(self.random.uniform(0, 0.5))
            self.policy = self.random.choice(("HPF", "UP"))
            self.session.start_server(self.policy)

    def resume(self, everybody=False):
        now = time.monotonic()
        for program, until in list(self.stopped.items()):
            if everybody or now >= until:
                program.worker.signal(signal.SIGCONT)
                del self.stopped[program]
        if self.server_stopped_until is not None and (everybody or now >= self.server_stopped_until):
            self.session.server_process.send_signal(signal.SIGCONT)
            self.server_stopped_until = None

    def work(self):
        return sum(program.count() for program in list(self.programs))


class Pauses(threading.Thread):
    """Watches the device's progress all the time, also while programs start. Records its longest pauses in ms, each with the events
    before it."""

    def __init__(self, chaos):
        super().__init__(daemon=True)
        self.chaos = chaos
        self.longest = []  # those above 100 ms
        self.worst = 0.0
        self._end = threading.Event()

    def run(self):
        moved_at, work = time.monotonic(), self.chaos.work()
        while not self._end.wait(0.001):
            now, newer = time.monotonic(), self.chaos.work()
            if newer == work:
                continue
            pause = (now - moved_at) * 1e3
            self.worst = max(self.worst, pause)
            if pause > 100:
                self.longest.append((pause, self.chaos.last))
            moved_at, work = now, newer

    def end(self):
        self._end.set()
        self.join()


def at_random(session, seed=1):
    alone = alone_rate(session)
    case = "kills, stops and restarts at random"
    seconds = CHAOS * session.seconds
    with session.step(FIGURE, case, seconds + 120), session.server():
        chaos = Chaos(session, seed)
        time.sleep(SETTLE)
        pauses = Pauses(chaos)
        pauses.start()
        end = time.monotonic() + seconds
        act_at = time.monotonic()
        while time.monotonic() < end:
            chaos.resume()
            if time.monotonic() >= act_at:
                chaos.act()
                act_at = time.monotonic() + chaos.random.uniform(0.1, 1)
            time.sleep(0.002)
        pauses.end()
        chaos.resume(everybody=True)
        print(f"   {chaos.done}", flush=True)
        session.report.add(FIGURE, case, "the device's longest pause, ms", pauses.worst, (None, 100),
                           details={"above_100_ms": pauses.longest})
        # Now the most important check: at the end, everything must have been given back.
        session.end_server()
        session.start_server("HPF")
        done = rates(chaos.programs, settle=3)
        add(session, f"{case}: all left", "all : one alone", sum(done) / alone, (0.97, None), alone, sum(done))
        while len(chaos.programs) > 1:
            chaos.programs.pop().kill()
        rate, = rates(chaos.programs)
        add(session, f"{case}: one left", "alone", rate / alone, (0.97, None), alone, rate)
        session.server_process.kill()
        session.server_process.wait()
        rate, = rates(chaos.programs)
        add(session, f"{case}: one left, and no server", "alone", rate / alone, (0.97, None), alone, rate)


STAGES = {
    "liveness_classes": three_classes,
    "liveness_ahead": launching_ahead,
    "liveness_server": hung_server,
    "liveness_training": training,
    "liveness_random": at_random,
}
