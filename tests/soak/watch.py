"""Watches the clients of the soak test, and finds those without progress and without a reason."""
import json
import os
import subprocess

from clients import SLOTS, now

EVERY = 0.025
REASONS = ("held", "suspended", "stalled", "stopped")


def has_ended(pid):
    """True if the process has ended, or is a zombie whose parent has not waited for it yet."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


class Query:
    """A running `xsched list --json`."""

    def __init__(self, world):
        self.began = now()
        self.process = subprocess.Popen([str(world.bin / "xsched"), "list", "--json"], env=os.environ | world.tool_env,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def answer(self, limit):
        """None: not yet; False: there is none; else the queues."""
        if self.process.poll() is None:
            if now() - self.began < limit:
                return None
            self.process.kill()
        out, _ = self.process.communicate()
        try:
            return json.loads(out) if self.process.returncode == 0 else False
        except ValueError:
            return False


class Clock:
    """Since when a page shows no progress, and how late its own process's sleeping thread was until then."""

    def __init__(self):
        self.key = None
        self.since = now()
        self.late_ns = 0
        self.strikes = 0
        self.reported = False

    def restart(self, late_ns=0):
        self.since = now()
        self.late_ns = late_ns
        self.strikes = 0


class Watch:
    def __init__(self, world):
        self.world = world
        self.clocks = [Clock() for _ in range(2 * SLOTS)]
        self.limit = 1.0
        self.late = 0.0  # total delay of this process
        self.latest = 0.0  # its longest delay
        self.late_at = [0.0] * (2 * SLOTS)
        self.longest_gap = {}  # without a known reason
        self.longest_start = {}
        self.longest_create = {}
        self.device_stood = {}
        self.device_since = {}
        self.device_late = {}
        self.reasons = {}
        self.query = None
        self.asked_for = []
        self.last = now()

    def restart_clock(self, index):
        self.clocks[index].restart(self.world.pages.read(index).late_ns)
        self.late_at[index] = self.late

    def restart_all(self):
        for index in range(2 * SLOTS):
            self.restart_clock(index)
        self.device_since.clear()

    def gap(self, index, page):
        """Seconds without progress, minus the delay of the machine itself."""
        clock = self.clocks[index]
        starved = (page.late_ns - clock.late_ns) / 1e9 if page.late_ns >= clock.late_ns else 0
        return now() - clock.since - starved - (self.late - self.late_at[index])

    def look(self):
        """Call it every EVERY seconds."""
        late = now() - self.last - EVERY
        self.last = now()
        if late > EVERY / 2:
            self.late += late
            self.latest = max(self.latest, late)
        suspects = []
        wanting = {}
        for slot in self.world.slots:
            for index in (slot.index, slot.index + SLOTS):
                page = self.world.pages.read(index)
                if self.look_at(slot, index, page):
                    suspects.append((slot, index))
                if index == slot.index and self.device_may_work(slot, page):
                    wanting.setdefault(slot.platform, []).append((index, page))
        self.look_at_devices(wanting)
        self.ask(suspects)

    def look_at(self, slot, index, page):
        """True if the server must be asked for a reason."""
        clock = self.clocks[index]
        child = index >= SLOTS
        alive = page.pid != 0 if child else slot.process is not None and slot.process.poll() is None
        if not alive or (slot.still_until and not child):
            self.restart_clock(index)
            return False
        key = (page.pid, page.progress)
        if key != clock.key or not (page.wants or page.steps == 0):
            if clock.key and not child and page.steps == 1 and clock.key[1] == 0 and page.pid == slot.pid:
                self.note(self.longest_start, slot.platform, now() - slot.spawned)
            self.note(self.longest_create, slot.platform, page.longest_create_ns / 1e9)
            clock.key = key
            clock.reported = False
            self.restart_clock(index)
            return False
        gap = self.gap(index, page)
        if child and gap > 0.2 and has_ended(page.pid):
            self.restart_clock(index)
            return False
        if clock.strikes == 0 and gap <= self.limit:
            self.note(self.longest_gap, slot.platform, gap)
        return gap > self.limit and not clock.reported

    @staticmethod
    def note(longest, key, seconds):
        longest[key] = max(longest.get(key, 0), seconds)

    @staticmethod
    def device_may_work(slot, page):
        return slot.process is not None and not slot.still_until and page.pid and page.wants and page.steps

    def look_at_devices(self, wanting):
        """Checks that each device that programs want works for any of them."""
        for platform in {slot.platform for slot in self.world.slots}:
            clients = wanting.get(platform)
            done = sum(self.world.pages.read(slot.index).progress for slot in self.world.slots if slot.platform == platform)
            since, before = self.device_since.get(platform, (now(), None))
            # A long command may still run.
            if not clients or done != before or any(page.doing == "long" for _, page in clients):
                self.device_since[platform] = (now(), done)
                self.device_late[platform] = (self.late, {index: page.late_ns for index, page in clients or []})
                continue
            late, each = self.device_late[platform]
            starved = max([(page.late_ns - each.get(index, page.late_ns)) / 1e9 for index, page in clients] + [0])
            self.note(self.device_stood, platform, now() - since - starved - (self.late - late))

    def ask(self, suspects):
        """For a program without progress, the server must give a reason, at two checks."""
        world = self.world
        if world.native:
            for slot, index in suspects:
                self.note(self.longest_gap, slot.platform, self.gap(index, world.pages.read(index)))
            return
        if world.server is None or world.server_still_until:
            # Without a server, nothing may be held, and there is no reason to ask for. (The clocks start anew then.)
            for slot, index in suspects:
                if self.gap(index, world.pages.read(index)) > self.limit + 0.2:
                    self.report(slot, index, "nobody to ask for them")
            return
        if self.query is None:
            if suspects:
                self.asked_for = [(slot, index, self.clocks[index].key) for slot, index in suspects]
                self.query = Query(world)
            return
        answer = self.query.answer(2.0)
        if answer is None:
            return
        self.query = None
        for slot, index, key in self.asked_for:
            clock = self.clocks[index]
            page = world.pages.read(index)
            if clock.key != key or (page.pid, page.progress) != key or slot.still_until:
                continue
            mine = [q for q in answer or [] if q["pid"] == page.pid]
            reasons = [q["state"] for q in mine if q.get("why") or q["state"] in REASONS]
            if reasons:
                self.reasons[reasons[0]] = self.reasons.get(reasons[0], 0) + 1
                self.restart_clock(index)
                continue
            clock.strikes += 1
            if clock.strikes >= 2 and self.gap(index, page) > self.limit + 0.2:
                self.report(slot, index, [q["state"] for q in mine] if answer is not False else "no answer")

    def report(self, slot, index, states):
        self.clocks[index].reported = True
        page = self.world.pages.read(index)
        self.world.fail("unheard of", f"{slot.platform} client {index} (pid {page.pid}, {page.doing}, {page.done} commands done) has "
                        f"made no progress for {self.gap(index, page):.1f} s; its queues: {states}; the server is "
                        f"{self.world.server_state}")
