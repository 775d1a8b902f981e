#!/usr/bin/env python3
"""Forty programs at a time over the software device, OpenCL and CUDA's stand-in, with random events.

They start, work, launch ahead without waiting, synchronize, fork, exec and end. They are killed, stopped and frozen. Hints and policies
change. The server is stopped, killed and started again. The test checks:

    unheard of   if a program makes no progress for longer than a second (or twice the native time), `xsched list --json`
                 gives a reason
    device       no device with work stands still for longer than that
    results      every program checks its results, and ends with status 0
    leaks        memory, descriptors and shared memory of the server and of programs do not grow
    survivors    when all rivals have ended, each is as fast as the same program that runs natively beside it, its gates are
                 open and its slice is the driver's: with a server, and with a server that hangs

The seed determines the events. The first part runs without XSched, to find out what this machine can do.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from clients import EXIT, SLOTS, STEADY, Pages, Slot, Usage, now
from watch import EVERY, Watch

PLATFORMS = {"soft": 16, "cuda": 13, "opencl": 11}
DRIVERS_SLICES_US = (2000, 2048)  # the stand-in's: never set, and given back
POLICIES = ("HPF", "HPF", "UP")
# How often each event happens, relative to the others.
EVENTS = {"kill": 6, "stop": 8, "freeze": 4, "hint": 10, "policy": 1, "server stops": 3, "server is killed": 2}


def schedule(seed, seconds, kill_server_until):
    """[(when, what, slot, number)]"""
    choose = random.Random(f"{seed}/schedule")
    events = []
    at = 1.0
    while at < seconds - 3:
        what = choose.choices(list(EVENTS), EVENTS.values())[0]
        event = (at, what, choose.randrange(SLOTS), choose.random())
        if what != "server is killed" or at < kill_server_until:
            events.append(event)
        at += choose.expovariate(2.5)
    return events


class World:
    def __init__(self, options, native):
        self.bin, self.lib, self.seed, self.native = options.bin, options.lib, options.seed, native
        self.longest_life = options.seconds + 150
        self.folder = tempfile.mkdtemp(prefix="xsched-soak-")
        self.socket = os.path.join(self.folder, "s")
        self.tool_env = {"XSCHED_SOCKET": self.socket}
        self.log_path = os.path.join(self.folder, "log")
        self.log = open(self.log_path, "w")
        self.pages = Pages(self.folder)
        self.server = None
        self.server_back_at = None
        self.server_still_until = None
        self.server_policy = "HPF"
        self.tools = []
        self.failures = []
        self.recent = []
        self.begin = now()
        self.slots = []
        self.watch = Watch(self)
        self.make_slots()

    def make_slots(self):
        for platform, count in PLATFORMS.items():
            if not (self.bin / f"soak_{platform}").exists():
                print(f"{platform}: not built, left out")
                continue
            for i in range(count):
                # One is more urgent than the other, so one of them is held while both work.
                survivor = i < 2
                self.slots.append(Slot(self, len(self.slots), platform, survivor, priority=(0, 5)[i] if survivor else None))

    def began(self, slot):
        self.watch.restart_clock(slot.index)

    def happened(self, text):
        self.recent = [*self.recent[-11:], f"{now() - self.begin:.2f} {text}"]

    def fail(self, what, text):
        self.failures.append((what, text))
        if len([1 for kind, _ in self.failures if kind == what]) > 6:
            return
        print(f"FAILED at {now() - self.begin:.2f} s: {what}: {text}")
        print("    before: " + "; ".join(self.recent), flush=True)

    @property
    def server_state(self):
        if self.server is None:
            return "gone"
        return "stopped" if self.server_still_until else f"there ({self.server_policy})"

    def start_server(self, policy="HPF"):
        self.server_policy = policy
        self.server = subprocess.Popen([str(self.bin / "xserver"), "--socket", self.socket, "--log-level", "error", "--policy", policy],
                                       stdout=self.log, stderr=self.log)
        self.server_back_at = None
        self.watch.restart_all()

    def stop_server(self):
        os.kill(self.server.pid, signal.SIGSTOP)
        self.server_still_until = float("inf")
        self.watch.restart_all()

    def continue_server(self):
        os.kill(self.server.pid, signal.SIGCONT)
        self.server_still_until = None
        self.watch.restart_all()

    def kill_server(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server = None
        self.server_still_until = None
        self.watch.restart_all()

    def tool(self, *arguments):
        """Runs a tool in the background, because it may hang as long as the server does."""
        self.tools.append((now(), subprocess.Popen([str(self.bin / "xsched"), *arguments], env=os.environ | self.tool_env,
                                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))

    def do(self, what, index, number):
        slot = self.slots[index % len(self.slots)]
        if what == "kill" and not slot.survivor:
            slot.kill()
        elif what in ("stop", "freeze"):
            slot.stand_still(0.1 + 1.9 * number, what == "freeze")
        elif what == "hint" and not self.native and slot.pid:
            self.tool("hint", "--pid", str(slot.pid), "--priority", str(int(number * 6)))
        elif self.native or not (what == "policy" or self.server):
            return
        elif what == "policy":
            self.server_policy = POLICIES[int(number * len(POLICIES))]
            self.tool("policy", "set", self.server_policy)
        elif what == "server stops" and not self.server_still_until:
            self.stop_server()
            self.server_still_until = now() + 0.1 + 1.9 * number
        elif what == "server is killed":
            self.kill_server()
            self.server_back_at = now() + 1.5 * number
            self.server_policy = POLICIES[int(number * 7) % len(POLICIES)]
        self.happened(f"{what} {slot.index} {number:.2f}")

    def tick(self, restart=True):
        for slot in self.slots:
            if slot.still_until and now() >= slot.still_until:
                slot.go_on()
            if slot.process and slot.process.poll() is not None:
                code = slot.process.returncode
                if code != 0 and not slot.killed:
                    self.fail("results", f"{slot.platform} client {slot.index} ended with {code}: {self.last_words()}")
                slot.process = None
                slot.start_at = now() + 0.1
            if restart and slot.process is None and now() >= slot.start_at:
                slot.start()
        if self.server_back_at and now() >= self.server_back_at:
            self.start_server(self.server_policy)
        if self.server_still_until and now() >= self.server_still_until:
            self.continue_server()
        if self.server and self.server.poll() is not None:
            self.fail("server", f"it ended with {self.server.returncode}: {self.last_words()}")
            self.server = None
            self.server_back_at = now() + 0.5
        for began, process in list(self.tools):
            if process.poll() is None and now() - began < 5:
                continue
            if process.poll() is None:
                process.kill()
                process.wait()
            self.tools.remove((began, process))
        self.watch.look()

    def last_words(self):
        self.log.flush()
        with open(self.log_path, errors="replace") as file:
            return " | ".join(file.read().splitlines()[-3:])

    def run(self, seconds, restart=True, events=()):
        begin = now()
        events = list(events)
        while now() - begin < seconds:
            while events and now() - begin >= events[0][0]:
                self.do(*events.pop(0)[1:])
            self.tick(restart)
            time.sleep(EVERY)

    def least_usage(self, pids, seconds=2.0, restart=True):
        """The least that each of these processes uses during that time."""
        least = {}
        for _ in range(int(seconds / 0.2)):
            self.run(0.2, restart)
            for pid in pids:
                try:
                    least.setdefault(pid, Usage(pid)).keep_least(Usage(pid))
                except OSError:  # it has ended
                    pass
        return least

    def all_steady(self, slots):
        """Lets all of them work, one command after the other."""
        for slot in slots:
            self.pages.command(slot.index, STEADY)
        return self.run_until(lambda: all(self.pages.read(slot.index).doing == "steady" for slot in slots), 10) is not None

    def run_until(self, condition, seconds):
        """Waits for it, and returns how long it took; None: it did not happen."""
        begin = now()
        while not condition():
            if now() - begin > seconds:
                return None
            self.tick(restart=False)
            time.sleep(0.01)
        return now() - begin

    def time_to_progress(self, slots, seconds):
        """{platform: seconds until its program has finished some commands; None: it has not}"""
        begin = {slot: self.pages.read(slot.index).done for slot in slots}
        took = dict.fromkeys([slot.platform for slot in slots])
        start = now()

        def all_have():
            for slot in slots:
                if took[slot.platform] is None and self.pages.read(slot.index).done > begin[slot] + 8:
                    took[slot.platform] = now() - start
            return None not in took.values()

        self.run_until(all_have, seconds)
        return took

    def survivors(self):
        return [slot for slot in self.slots if slot.survivor and slot.process]

    def only(self, wanted):
        """Kills all other clients."""
        for slot in self.slots:
            if slot not in wanted:
                slot.end()

    def rates(self, slots, seconds=2.0):
        """Commands per second of each; they may belong to several worlds."""
        before = [slot.page().done for slot in slots]
        begin = now()
        self.run(seconds, restart=False)
        taken = now() - begin
        return [(slot.page().done - done) / taken for slot, done in zip(slots, before)]

    def queues(self):
        try:
            done = subprocess.run([str(self.bin / "xsched"), "list", "--json"], env=os.environ | self.tool_env, capture_output=True,
                                  text=True, timeout=5)
        except subprocess.TimeoutExpired:
            return []
        return json.loads(done.stdout or "[]")

    def close(self):
        for slot in self.slots:
            slot.end()
        self.kill_server()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def processor_use():
    with open("/proc/stat") as file:
        times = list(map(int, file.readline().split()[1:9]))
    return sum(times) - times[3] - times[4], sum(times)


class Soak:
    def __init__(self, options):
        self.options = options
        self.passed = 0
        self.failed = 0

    def check(self, holds, what):
        print(f"{'passed' if holds else 'FAILED'}: {what}", flush=True)
        self.passed += bool(holds)
        self.failed += not holds

    def natively(self):
        """Measures this machine without XSched: the longest pause of a program, and the speed of one program of each platform."""
        world = World(self.options, native=True)
        try:
            seconds = max(6.0, min(30.0, self.options.seconds / 8))
            busy, total = processor_use()
            world.run(seconds, events=schedule(self.options.seed, seconds, 0))
            busy, total = (after - before for after, before in zip(processor_use(), (busy, total)))
            ones = [slot for slot in world.survivors() if slot.priority == 0]
            world.only(ones)
            world.all_steady(ones)
            alone = {slot.platform: rate for slot, rate in zip(ones, world.rates(ones))}
            self.native_create = max(world.watch.longest_create.values(), default=0)
            self.limit = max(1.0, 2 * max(world.watch.longest_gap.values(), default=0))
            print(f"natively: processors {100 * busy / total:.0f} % busy; longest pauses {rounded(world.watch.longest_gap)}, "
                  f"starts {rounded(world.watch.longest_start)} s; alone {rounded(alone)} commands/s; "
                  f"so no program may be unheard of for {self.limit:.1f} s", flush=True)
            self.check(not world.failures, "without XSched, every program computes what is right")
        finally:
            world.close()

    def soak(self):
        world = self.world = World(self.options, native=False)
        world.watch.limit = self.limit
        seconds = self.options.seconds
        shared = shared_memory()
        try:
            world.start_server()
            world.run_until(lambda: os.path.exists(world.socket), 5)
            self.empty_server = Usage(world.server.pid)
            events = schedule(self.options.seed, seconds, kill_server_until=seconds / 2)
            parts = [0, seconds / 3, seconds * 2 / 3, seconds]
            self.part(events, *parts[0:2])
            programs = world.least_usage([slot.pid for slot in world.survivors()])
            self.part(events, *parts[1:3])
            server = world.server and world.least_usage([world.server.pid])
            self.part(events, *parts[2:4])
            self.after(programs, server)
            self.end_with_a_server()
            self.end_with_a_server_that_hangs()
            self.leave()
        finally:
            world.close()
        self.check(shared_memory() <= shared, "nothing is left in /dev/shm")

    def part(self, events, start, end):
        self.world.run(end - start, events=[(at - start, *rest) for at, *rest in events if start <= at < end])

    def after(self, programs, server):
        """Checks the run while the programs still work."""
        world = self.world
        watch = world.watch
        print(f"longest pauses without a reason asked for {rounded(watch.longest_gap)}, starts {rounded(watch.longest_start)}, "
              f"streams made in {rounded(watch.longest_create)}, devices stood for {rounded(watch.device_stood)} s; "
              f"reasons {watch.reasons}; generations {sum(slot.generation for slot in world.slots)}")
        self.wrong = len([kind for kind, _ in world.failures if kind == "results"])
        kinds = [kind for kind, _ in world.failures]
        self.check("unheard of" not in kinds, f"no program is unheard of ({kinds.count('unheard of')} were)")
        self.check(max(watch.device_stood.values(), default=0) <= self.limit, "no device with work stands still")
        create = max(watch.longest_create.values(), default=0)
        self.check(create <= self.native_create + watch.latest + 0.1, f"no stream is made later for a server's sake: {create:.3f} s, "
                   f"natively {self.native_create:.3f}, and the machine was late by {watch.latest:.3f}")
        self.check("results" not in kinds, f"results are right, and programs end with status 0 ({kinds.count('results')} did not)")
        self.check("server" not in kinds, "the server ends when it is told to, and not before")
        now_used = world.least_usage([slot.pid for slot in world.survivors()] + [world.server.pid] if world.server else [])
        for slot in world.survivors():
            before, usage = programs.get(slot.pid), now_used.get(slot.pid)
            if before is None or usage is None:
                self.check(False, f"{slot.platform} client {slot.index} lives from the beginning to the end")
                continue
            # A thread that is only started when it is needed may be new. One per event would be many more.
            self.check(usage.resident_kb - before.resident_kb <= 4096 and usage.memfds <= before.memfds and
                       usage.fds <= before.fds + 1 and usage.threads <= before.threads + 1,
                       f"{slot.platform} client {slot.index} does not grow: {before} -> {usage}")
        if server and world.server and world.server.pid in server:
            before, usage = server[world.server.pid], now_used.get(world.server.pid)
            self.check(usage and usage.resident_kb - before.resident_kb <= 4096, f"the server does not grow: {before} -> {usage}")

    def as_natively(self, ones, what, soon):
        """They continue at once. Within a second they are as fast as natively, with gates and slices as without XSched."""
        world = self.world
        late = world.watch.late
        took = world.time_to_progress(ones, 5)
        slack = 2 * (world.watch.late - late) + 0.15
        self.check(all(t is not None and t <= soon + slack for t in took.values()), f"{what}, each goes on soon: {milliseconds(took)}")
        for slot, (rate, native) in zip(ones, self.beside_native_ones(ones)):
            self.check(rate >= 0.8 * native, f"{what}, {slot.platform} is natively fast: {rate:.0f} of {native:.0f} commands/s")
        for slot in ones:
            page = world.pages.read(slot.index)
            if slot.platform == "cuda":
                self.check(page.slice_us in DRIVERS_SLICES_US and page.on == 1,
                           f"{what}, the slice is the driver's: {page.slice_us} µs, {'on' if page.on else 'off'} the device")

    def beside_native_ones(self, ones):
        """[(commands per second, the same of a program of that platform that runs natively at the same time)]

        Both at the same time, because the machine may be slower now than it was at the beginning.
        """
        world = self.world
        natives = World(self.options, native=True)
        try:
            twins = [next(twin for twin in natives.slots if twin.platform == slot.platform) for slot in ones]
            for twin in twins:
                twin.start()
            self.check(natives.all_steady(twins), "the native ones beside them work")
            best = [(0.0, 1.0)] * len(ones)
            for _ in range(4):  # other programs may use the machine as well
                both = world.rates([*ones, *twins])
                pairs = zip(both[:len(ones)], both[len(ones):])
                best = [max(old, new, key=lambda pair: pair[0] / max(pair[1], 1.0)) for old, new in zip(best, pairs)]
                if all(rate >= 0.9 * native for rate, native in best):
                    break
            return best
        finally:
            natives.close()

    def end_with_a_server(self):
        world = self.world
        if world.server is None:
            world.start_server()
        if world.server_still_until:
            world.continue_server()
        survivors = world.survivors()
        low = [slot for slot in survivors if slot.priority == 0]
        for slot in survivors:
            slot.go_on()
            world.pages.command(slot.index, STEADY)
            world.tool("hint", "--pid", str(slot.pid), "--priority", str(slot.priority))
        world.tool("policy", "set", "HPF")
        world.only(survivors)
        self.check(world.all_steady([slot for slot in survivors if slot.priority]), "the urgent ones work")
        world.run(1, restart=False)
        world.only(low)
        self.as_natively(low, "after all rivals", 0.1)
        # A forked child may still exist for a moment.
        world.run_until(lambda: len(world.queues()) <= len(low), 5)
        queues = world.queues()
        self.check(sorted(q["pid"] for q in queues) == sorted(slot.pid for slot in low) and
                   not any(q["gated"] or q["state"] in ("held", "suspended", "stalled") for q in queues),
                   f"the server knows of nobody else, and holds nobody: {[(q['pid'], q['state'], q['gated']) for q in queues]}")

    def rivals(self):
        """Starts an urgent program beside each survivor, and waits until the survivor is held."""
        world = self.world
        low = world.survivors()
        rivals = [slot for slot in world.slots if slot.survivor and not slot.process]
        for slot in rivals:
            slot.start()
        world.all_steady(rivals)
        missing = {slot.pid: slot.platform for slot in low}

        def all_were_held():
            for queue in world.queues():
                if queue["state"] in ("held", "suspended"):
                    missing.pop(queue["pid"], None)
            return not missing

        world.run_until(all_were_held, 10)
        self.check(not missing, f"beside urgent rivals, each is held: not {list(missing.values())}")
        return low, rivals

    def end_with_a_server_that_hangs(self):
        world = self.world
        low, _ = self.rivals()
        world.stop_server()
        world.only(low)
        self.as_natively(low, "when the server hangs and the rivals have gone", 0.25)
        world.continue_server()
        low, rivals = self.rivals()
        world.stop_server()
        took = world.time_to_progress(low, 3)
        self.check(all(t is not None and t <= 0.25 + 0.25 for t in took.values()),
                   f"beside rivals, when the server hangs, each goes on: {milliseconds(took)}")
        world.continue_server()
        world.only(low)
        world.run(1, restart=False)

    def leave(self):
        world = self.world
        low = world.survivors()
        for slot in low:
            slot.killed = False
            world.pages.command(slot.index, EXIT)
        world.run_until(lambda: not world.survivors(), 5)
        wrong = [text for kind, text in world.failures if kind == "results"]
        self.check(not world.survivors() and len(wrong) == self.wrong, f"the last ones end by themselves, well: {wrong[self.wrong:]}")
        world.run(1, restart=False)
        usage = world.least_usage([world.server.pid], 1, restart=False).get(world.server.pid)
        self.check(usage and usage.fds <= self.empty_server.fds and usage.memfds <= self.empty_server.memfds and
                   usage.threads <= self.empty_server.threads,
                   f"the server has let go of everything: {self.empty_server} -> {usage}")


def milliseconds(took):
    return {name: "never" if seconds is None else f"{seconds * 1e3:.0f} ms" for name, seconds in took.items()}


def rounded(figures):
    return {name: round(value, 2 if value < 10 else None) for name, value in figures.items()}


def shared_memory():
    return len([name for name in os.listdir("/dev/shm") if "xsched" in name])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--lib", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    options.bin, options.lib = options.bin.resolve(), options.lib.resolve()
    for name in list(os.environ):
        if name.startswith("XSCHED_") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
            del os.environ[name]
    print(f"seed {options.seed}, {options.seconds:.0f} s (again: --seed {options.seed})", flush=True)
    soak = Soak(options)
    soak.natively()
    soak.soak()
    print(f"{soak.passed} passed, {soak.failed} failed (seed {options.seed})")
    sys.exit(1 if soak.failed else 0)


if __name__ == "__main__":
    main()
