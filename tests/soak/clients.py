"""The soak test's clients: forty slots. In each slot, one program runs after the other."""
import mmap
import os
import random
import signal
import struct
import subprocess
import time

SLOTS = 40
PAGE = struct.Struct("=11Q")  # page.h
PAGE_SIZE = 256
COMMAND_AT = 8 * 8
RUN, STEADY, IDLE, EXIT = range(4)
PHASES = ["start", "continuous", "ahead", "task", "idle", "queues", "long", "fork", "steady", "end"]
FREEZERS = ("/sys/fs/cgroup/freezer", "/sys/fs/cgroup")


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class Page:
    FIELDS = ("pid", "done", "steps", "wants", "late_ns", "slice_us", "on", "errors", "command", "phase", "longest_create_ns")

    def __init__(self, values):
        self.__dict__.update(zip(self.FIELDS, values))

    @property
    def progress(self):
        return self.done + self.steps

    @property
    def doing(self):
        return PHASES[self.phase] if self.phase < len(PHASES) else str(self.phase)


class Pages:
    """The file that the clients write their progress to; a forked child has the page SLOTS behind its parent's."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "pages")
        with open(self.path, "w+b") as file:
            file.truncate(2 * SLOTS * PAGE_SIZE)
            self.map = mmap.mmap(file.fileno(), 0)

    def read(self, index):
        return Page(PAGE.unpack_from(self.map, index * PAGE_SIZE))

    def clear(self, index):
        self.map[index * PAGE_SIZE:(index + 1) * PAGE_SIZE] = bytes(PAGE_SIZE)

    def command(self, index, command):
        struct.pack_into("=Q", self.map, index * PAGE_SIZE + COMMAND_AT, command)


class Freezer:
    """Freezes a process by a control group, or by SIGSTOP if there is none."""

    def __init__(self, name):
        self.folder = None
        for root in FREEZERS:
            state = os.path.join(root, name, "freezer.state" if root.endswith("freezer") else "cgroup.freeze")
            try:
                os.mkdir(os.path.dirname(state))
            except OSError:
                continue
            if os.path.exists(state):
                self.folder, self.state = os.path.dirname(state), state
                return
            os.rmdir(os.path.dirname(state))

    def freeze(self, pid):
        if self.folder is None:
            return os.kill(pid, signal.SIGSTOP)
        self._write("cgroup.procs", str(pid))
        self._set(True)

    def thaw(self, pid):
        if self.folder is None:
            return os.kill(pid, signal.SIGCONT)
        self._set(False)

    def remove(self):
        if self.folder is None:
            return
        self._set(False)
        for _ in range(100):
            try:
                return os.rmdir(self.folder)
            except OSError:
                time.sleep(0.02)

    def _set(self, frozen):
        old = self.state.endswith("freezer.state")
        self._write(os.path.basename(self.state), ("FROZEN" if frozen else "THAWED") if old else str(int(frozen)))

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)


class Usage:
    """The system's resources that a process has."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/statm") as file:
            self.resident_kb = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
        links = []
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
            except OSError:
                pass
        self.fds = len(links)
        self.memfds = sum("memfd:" in link for link in links)
        self.threads = len(os.listdir(f"/proc/{pid}/task"))

    def __repr__(self):
        return f"{self.resident_kb} KiB, {self.fds} descriptors ({self.memfds} of memory), {self.threads} threads"

    def keep_least(self, other):
        """The smaller value of each resource, because short-lived use is not growth."""
        for name in vars(self):
            setattr(self, name, min(getattr(self, name), getattr(other, name)))


class Slot:
    """One client at a time. Survivors run from the beginning to the end and are never killed."""

    def __init__(self, world, index, platform, survivor=False, priority=None):
        self.world = world
        self.index = index
        self.platform = platform
        self.survivor = survivor
        self.priority = priority
        self.generation = 0
        self.process = None
        self.freezer = None
        self.killed = False
        self.still_until = 0.0
        self.still_by = None
        self.spawned = 0.0
        self.start_at = 0.0

    @property
    def pid(self):
        return self.process.pid if self.process else 0

    def page(self):
        return self.world.pages.read(self.index)

    def start(self):
        world = self.world
        choose = random.Random(f"{world.seed}/{self.index}/{self.generation}")
        self.generation += 1
        seconds = world.longest_life if self.survivor else choose.uniform(1, 25)
        priority = choose.choice([0, 0, 0, 1, 2, 5]) if self.priority is None else self.priority
        level = choose.randint(1, 3)
        command = [str(world.bin / f"soak_{self.platform}"), world.pages.path, str(self.index), str(choose.getrandbits(63)),
                   f"{seconds:.3f}", str(priority), str(level)]
        world.pages.clear(self.index)
        self.killed = False
        self.still_until = 0.0
        self.spawned = now()
        self.process = subprocess.Popen(command + (["native"] if world.native else []), env=self.environment(priority),
                                        stdin=subprocess.DEVNULL, stdout=world.log, stderr=world.log)
        world.began(self)

    def environment(self, priority):
        world = self.world
        # As few threads as possible, because the test has many processes.
        env = os.environ | {"POCL_DEVICES": "pthread", "POCL_MAX_PTHREAD_COUNT": "1", "STANDIN_CUDA_POLL_US": "500",
                            "STANDIN_CUDA_CONTROL": "/dev/null"}
        if world.native:
            return env
        env |= {"XSCHED_SOCKET": world.socket, "XSCHED_SCHEDULER": "GLB", "XSCHED_AUTO_XQUEUE": "ON",
                "XSCHED_AUTO_XQUEUE_PRIORITY": str(priority)}
        if self.platform == "cuda":
            env["LD_PRELOAD"] = str(world.lib / "libshimcuda.so")
        if self.platform == "opencl":
            env["OPENCL_LAYERS"] = str(world.lib / "libshimopencl.so")
        return env

    def kill(self):
        self.killed = True
        self.go_on()
        if self.process and self.process.poll() is None:
            self.process.kill()

    def stand_still(self, seconds, frozen):
        if self.process is None or self.process.poll() is not None or self.still_until:
            return
        self.still_until = now() + seconds
        self.still_by = "freezer" if frozen else "signal"
        if frozen:
            self.freezer = self.freezer or Freezer(f"xsched-soak-{os.getpid()}-{self.index}")
            self.freezer.freeze(self.pid)
        else:
            os.kill(self.pid, signal.SIGSTOP)

    def go_on(self):
        if not self.still_until:
            return
        self.still_until = 0.0
        if self.still_by == "freezer":
            self.freezer.thaw(self.pid)
        elif self.process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
        self.world.watch.restart_clock(self.index)

    def end(self):
        self.kill()
        if self.process:
            self.process.wait()
            self.process = None
        self.world.pages.clear(self.index)
        if self.freezer:
            self.freezer.remove()
            self.freezer = None
