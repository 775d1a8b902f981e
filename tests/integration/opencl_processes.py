#!/usr/bin/env python3
"""OpenCL programs that make and release queues, threads, forks and libraries, by both routes."""
import os
import subprocess

from harness import check, left_nothing, main, nobody_waits_for_a_server_that_hangs, skip, test, wait_until
from opencl_program import ROUTES, OpenClClient

def natively(place, what, device):
    """The program's output without XSched. Skips the test if the driver itself fails."""
    try:
        done = subprocess.run([str(place.bin / "opencl_client"), what], env={**os.environ, "POCL_DEVICES": device},
                              capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        skip("the driver hangs here by itself")
    if done.returncode != 0:
        skip(f"the driver cannot do this by itself: {done.returncode} {done.stdout}")
    return done.stdout.splitlines()


def for_each_route(what, device="pthread", contended=False):
    """Calls the test for each route, with a server and, if requested, a more urgent program on the device."""
    def decorate(function):
        for route in ROUTES:
            def run(place, route=route):
                native = natively(place, what, device)
                place.start_server()
                if contended:
                    rival = OpenClClient(place, "work", route, device, 9)
                    wait_until(lambda: len(place.queues()) == 1, "the more urgent program works")
                    check(rival.process.poll() is None, "and goes on")
                function(place, OpenClClient(place, what, route, device), native)
            run.__name__ = f"{function.__name__}_by_{route}"
            test(run)
        return function
    return decorate


def a_server_that_hangs_makes_nobody_wait_by(route):
    def run(place):
        natively(place, "queues", "pthread")
        nobody_waits_for_a_server_that_hangs(
            place, lambda priority: OpenClClient(place, "continuous", route, priority=priority), "queues")
    run.__name__ = f"a_server_that_hangs_makes_nobody_wait_by_{route}"
    return run


for by in ROUTES:
    test(a_server_that_hangs_makes_nobody_wait_by(by))


def grew(lines):
    return int(lines[0].split()[-1])


@for_each_route("queues", contended=True)
def five_hundred_queues_leave_nothing(place, client, native):
    left_nothing(client.lines_at_end()[0], "queues", max(0, grew(native)) + 1024)


@for_each_route("threads", contended=True)
def threads_that_come_and_go_leave_nothing(place, client, native):
    left_nothing(client.lines_at_end()[0], "threads", max(0, grew(native)) + 1024)


@for_each_route("unload")
def opening_and_closing_opencl_again_and_again_leaves_nothing_and_is_scheduled_still(place, client, native):
    wait_until(lambda: "working" in client.lines, "it works", 20)
    wait_until(lambda: [q["pid"] for q in place.queues()] == [client.process.pid], "it is scheduled", 1)
    left_nothing(client.lines_at_end()[0], "closed", max(0, grew(native)) + 1024)


@for_each_route("unload-busy", contended=True)
def closing_opencl_over_a_busy_queue_harms_nothing(place, client, native):
    # Gates are closed, and are opened after the program has closed the library.
    check(client.lines_at_end() == native, f"as natively: {client.lines}")


def two_clients(place, client):
    wait_until(lambda: len({q["pid"] for q in place.queues()}) == 2, "two processes are scheduled", 2)
    check(client.process.pid in {q["pid"] for q in place.queues()}, "one is the parent")


@for_each_route("fork-first")
def a_child_forked_before_opencl_was_used_is_a_client_of_its_own(place, client, native):
    two_clients(place, client)
    check(sorted(client.lines_at_end()) == sorted(native), f"as natively: {client.lines}")


@for_each_route("fork-idle")
def a_child_that_does_not_use_opencl_exits_and_disturbs_nothing(place, client, native):
    check(client.lines_at_end() == native, f"as natively: {client.lines}")


# The driver's threads do not outlive a fork; this device has none.
@for_each_route("fork-later", device="basic")
def a_child_goes_on_with_its_parents_queue_and_is_scheduled_with_its_own(place, client, native):
    two_clients(place, client)
    check(sorted(client.lines_at_end()) == sorted(native), f"as natively: {client.lines}")


@test
def the_doctor_finds_that_programs_are_reached_as_a_layer(place):
    natively(place, "queues", "pthread")
    said = subprocess.run([str(place.bin / "xsched"), "doctor"], env={**os.environ, "POCL_DEVICES": "pthread"}, capture_output=True,
                          text=True, timeout=50, check=False).stdout
    check("route: layer (OPENCL_LAYERS); a queue made through it is scheduled" in said, said)


if __name__ == "__main__":
    main(__doc__)
