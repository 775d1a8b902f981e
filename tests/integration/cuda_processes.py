#!/usr/bin/env python3
"""Several CUDA processes that share a stand-in device, with a server: gates and time slices, and how they are given back."""
import os
import pathlib
import signal
import time

from harness import Client, check, main, now_ms, slack, test, wait_until

SHORTEST, LONG, DRIVERS = 1, 100000, 2048
SET_TIMESLICE = "a06c0103"


class CudaClient(Client):
    """A cuda_client under the shim; with `level3` the driver has a resource manager."""

    def __init__(self, place, mode="continuous", priority=0, utilization=0, level3=True, kernel_us=1000, seconds=30, **env):
        env |= {"LD_PRELOAD": str(place.lib / "libshimcuda.so"), "STANDIN_CUDA_SHARED": place.folder, "XSCHED_AUTO_XQUEUE": "ON",
                "XSCHED_AUTO_XQUEUE_PRIORITY": str(priority)}
        if utilization:
            env["XSCHED_AUTO_XQUEUE_UTILIZATION"] = str(utilization)
        if level3:
            env["STANDIN_CUDA_CONTROL"] = "/dev/null"
        self.priority = priority
        self.start(place, [str(place.bin / "cuda_client"), mode, str(kernel_us), str(seconds)], env)

    def group(self):
        """Its channel group: (time slice, on the device, how often the slice was set)."""
        lines = [line.split() for line in list(self.lines) if line.startswith("group")]
        return tuple(map(int, lines[-1][1:])) if lines else (0, 1, 0)

    def stream_priority(self):
        lines = [line.split() for line in list(self.lines) if line.startswith("priority")]
        return int(lines[-1][1]) if lines else 0

    def slice(self):
        return self.group()[0]

    def wait_for_slice(self, slice_us, seconds=5):
        wait_until(lambda: self.slice() == slice_us, lambda: f"the slice of priority {self.priority} is {slice_us}: {self.group()}", seconds)

    def wait_for_work(self):
        wait_until(lambda: self.progress() > 20, lambda: f"it runs: {self.lines[-3:]}")

    def stop(self):
        """Stops it (SIGSTOP) where it does not have the lock of the stand-in, for which all others would wait. The driver's locks are in
        the kernel, where no process is stopped."""
        while True:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)  # all of its threads
            if not has_a_lock(self.process.pid):
                return
            self.process.send_signal(signal.SIGCONT)


def has_a_lock(pid):
    locks = [line.split() for line in pathlib.Path("/proc/locks").read_text().splitlines()]
    return any(lock[1] == "FLOCK" and lock[4] == str(pid) for lock in locks)  # who waits for one has an arrow there


def is_held(place, client):
    return any(q["pid"] == client.process.pid and q["state"] == "held" for q in place.queues())


def gains(client, seconds=0.3):
    before = client.progress()
    time.sleep(seconds)
    return client.progress() - before


def rivals(place, **options):
    """A low program and a high one, both with work."""
    low = CudaClient(place, **options)
    low.wait_for_work()
    high = CudaClient(place, priority=5, **options)
    high.wait_for_work()
    return low, high


@test
def gates_alone_hold_a_less_urgent_process(place):
    place.start_server()
    low, high = rivals(place, level3=False)
    wait_until(lambda: is_held(place, low), "the low one is held")
    wait_until(lambda: gains(low) <= 2, "it stands still")
    check(gains(high) > 50, "the high one works")
    check(low.group()[2] == high.group()[2] == 0, "nobody's slice is touched")
    moment = now_ms()
    high.end()
    wait_until(lambda: low.resumed_after(moment) is not None, "the low one goes on")
    check(low.resumed_after(moment) <= slack(), f"soon: {low.resumed_after(moment)}")


@test
def a_hint_for_a_whole_program_leaves_the_drivers_priorities_as_the_program_made_them(place):
    place.start_server()
    client = CudaClient(place, priority=5)
    client.wait_for_work()
    check(client.stream_priority() == 0, "as the program made it")
    place.tool("hint", "--pid", str(client.process.pid), "--priority", "7")
    wait_until(lambda: all(q["priority"] == 7 for q in place.queues()), lambda: f"it is hinted: {place.queues()}")
    time.sleep(0.1)
    check(client.stream_priority() == 0, f"it has no other stream: {client.stream_priority()}")


@test
def slices_are_set_when_a_rival_comes_and_given_back_when_it_has_gone(place):
    place.start_server()
    low = CudaClient(place)
    low.wait_for_work()
    check(low.group()[2] == 0, f"alone it has the driver's: {low.group()}")
    high = CudaClient(place, "task", priority=5)
    low.wait_for_slice(SHORTEST)
    high.wait_for_slice(LONG)
    high.end()
    low.wait_for_slice(DRIVERS)
    check(low.group()[1:] == (1, 2), f"it was set twice in all: {low.group()}")


@test
def slices_stay_while_tasks_and_streams_come_and_go(place):
    place.start_server()
    low = CudaClient(place)
    low.wait_for_work()
    high = CudaClient(place, "task", priority=5)
    low.wait_for_slice(SHORTEST)
    high.wait_for_slice(LONG)
    for client in (low, high):
        client.say("streams 20")
    time.sleep(1)
    high.say("mode idle")
    time.sleep(1.5)
    high.say("streams 20")
    high.say("mode task")
    time.sleep(0.5)
    check(low.group() == (SHORTEST, 1, 1), f"the low one's was set once: {low.group()}")
    check(high.group() == (LONG, 1, 1), f"and the high one's: {high.group()}")
    check(low.progress() > 100 and high.progress() > 50, f"both work: {low.progress()} {high.progress()}")


@test
def without_the_server_slices_are_the_drivers_and_gates_are_open(place):
    place.start_server()
    low, high = rivals(place)
    low.wait_for_slice(SHORTEST)
    high.wait_for_slice(LONG)
    wait_until(lambda: is_held(place, low), "the low one is held")
    place.server.kill()
    place.server.wait()
    low.wait_for_slice(DRIVERS)
    high.wait_for_slice(DRIVERS)
    wait_until(lambda: gains(low) > 20, "the low one goes on")
    place.start_server()
    low.wait_for_slice(SHORTEST)
    high.wait_for_slice(LONG)


def low_ones_in_turns(place):
    """Two low programs that take turns on the device, and a high one that has paused."""
    place.start_server()
    low = [CudaClient(place), CudaClient(place)]
    high = CudaClient(place, "task", priority=5)
    for client in low:
        client.wait_for_slice(SHORTEST)
    high.say("mode idle")
    wait_until(lambda: all(any(line.startswith("group 1 0") for line in client.lines) for client in low), "they take turns", 10)
    return low, high


@test
def a_program_that_is_off_the_device_is_on_it_again_without_the_server(place):
    low, _ = low_ones_in_turns(place)
    place.server.kill()
    place.server.wait()
    for client in low:
        client.wait_for_slice(DRIVERS)
        wait_until(lambda: client.group()[1] == 1, lambda: f"it is on: {client.group()}")  # noqa: B023
        wait_until(lambda: gains(client) > 20, "it works")  # noqa: B023


@test
def a_server_that_hangs_keeps_neither_gates_closed_nor_slices_short_nor_anybody_off_the_device(place):
    low, high = low_ones_in_turns(place)
    high.say("mode continuous")
    wait_until(lambda: all(is_held(place, client) for client in low), "the low ones are held")
    place.server.send_signal(signal.SIGSTOP)
    moment = now_ms()
    for client in low:
        client.wait_for_slice(DRIVERS)
        wait_until(lambda: client.group()[1] == 1, lambda: f"it is on: {client.group()}")  # noqa: B023
    took, bound = now_ms() - moment, slack() + 150
    check(took <= bound, f"all is given back within 250 ms: {took} (bound here {bound:.0f})")
    for client in low:
        wait_until(lambda: gains(client) > 10, "it works")  # noqa: B023


@test
def a_program_that_is_off_the_device_can_end(place):
    low, high = low_ones_in_turns(place)
    high.say("mode continuous")
    wait_until(lambda: all(is_held(place, client) for client in low), "the low ones are held")
    time.sleep(0.2)
    off = [client for client in low if client.group()[1] == 0]
    check(len(off) == 1, f"one of them is off the device: {[client.group() for client in low]}")
    off[0].say("exit")
    check(off[0].process.wait(15) == 0, "it ends")


@test
def shares_are_slices_in_proportion_and_nobody_is_held(place):
    place.start_server("--policy", "UP")
    one, two = CudaClient(place, utilization=75), CudaClient(place, utilization=25)
    one.wait_for_slice(4500)
    two.wait_for_slice(1500)
    check(not is_held(place, one) and not is_held(place, two), "nobody is held")
    check(gains(one) > 20 and gains(two) > 5, "both work")


@test
def where_slices_cannot_be_set_gates_hold_and_the_reason_is_logged(place):
    place.start_server()
    low = CudaClient(place)
    low.wait_for_work()
    low.say(f"refuse {SET_TIMESLICE}")
    time.sleep(0.1)
    high = CudaClient(place, priority=5)
    high.wait_for_slice(LONG)
    wait_until(lambda: is_held(place, low), "the low one is held")
    wait_until(lambda: gains(low) <= 2, "it stands still")
    text = low.end()
    check(text.count("cannot set the GPU's time slices") == 1, f"it says why, once: {text}")


@test
def under_mps_gates_hold(place):
    os.makedirs(os.path.join(place.folder, "mps"))
    open(os.path.join(place.folder, "mps", "control"), "w").close()
    place.start_server()
    low, high = rivals(place, CUDA_MPS_PIPE_DIRECTORY=os.path.join(place.folder, "mps"), XSCHED_LOG="info")
    wait_until(lambda: is_held(place, low), "the low one is held")
    wait_until(lambda: gains(low) <= 2, "it stands still")
    check(low.group()[2] == high.group()[2] == 0, "nobody's slice is touched")
    text = low.end()
    check("under MPS" in text and "level 2" in text, f"it says why: {text}")


@test
def a_program_without_level_3_leaves_all_the_drivers_slice(place):
    place.start_server()
    low = CudaClient(place)
    low.wait_for_work()
    high = CudaClient(place, priority=5, level3=False)
    high.wait_for_work()
    wait_until(lambda: is_held(place, low), "the low one is held")
    wait_until(lambda: gains(low) <= 2, "it stands still")
    check(low.group()[2] == 0, f"its slice is not touched: {low.group()}")


if __name__ == "__main__":
    main(__doc__)
