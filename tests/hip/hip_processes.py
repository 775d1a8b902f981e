#!/usr/bin/env python3
"""Several HIP processes with a server. Each has AMD's runtime over a software HSA agent, and all agents report the same GPU."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from harness import Client, check, main, nobody_waits_for_a_server_that_hangs, test, wait_until  # noqa: E402


class HipClient(Client):
    def __init__(self, place, priority):
        # The way users start programs.
        self.start(place, [str(place.bin / "xsched"), "run", "-p", str(priority), "--", os.environ["HIP_CLIENT"]])

    def wait_for_work(self):
        wait_until(lambda: self.progress() > 20, lambda: f"it runs: {self.lines[-3:]}")

    def gains(self, seconds=0.3):
        before = self.progress()
        time.sleep(seconds)
        return self.progress() - before


def rivals(place):
    place.start_server()
    low = HipClient(place, 0)
    low.wait_for_work()
    high = HipClient(place, 5)
    high.wait_for_work()
    return low, high


@test
def a_less_urgent_process_is_held_and_goes_on(place):
    low, high = rivals(place)
    states = lambda: {q["priority"]: q["state"] for q in place.queues()}  # noqa: E731
    wait_until(lambda: states().get(0) == "held", lambda: f"the low one is held: {states()}")
    wait_until(lambda: low.gains() <= 2, "it stands still")
    check(high.gains() > 50, "the high one works")
    high.end()
    wait_until(lambda: low.gains() > 50, "the low one goes on")


@test
def without_the_server_all_programs_run(place):
    low, high = rivals(place)
    wait_until(lambda: low.gains() <= 2, "the low one stands still")
    place.server.kill()
    place.server.wait()
    wait_until(lambda: low.gains() > 50 and high.gains() > 50, "both run")


@test
def processes_of_a_tenant_have_no_more_memory_than_its_limit_together(place):
    rules = pathlib.Path(place.folder) / "tenants.toml"
    rules.write_text('[default]\nmemory = "100MiB"\n')
    place.start_server("--user", "--tenants", str(rules))
    one, two = HipClient(place, 0), HipClient(place, 0)
    answers = lambda client: [line.split() for line in list(client.lines) if line.startswith("allocated")]  # noqa: E731

    def allocate(client, mib):
        """(the runtime's error, what is left, in MiB)."""
        before = len(answers(client))
        client.say(f"allocate {mib}")
        wait_until(lambda: len(answers(client)) > before, lambda: f"it answers: {client.lines[-3:]}")
        return int(answers(client)[-1][1]), int(answers(client)[-1][3])

    def expect(client, mib, answer, what):
        got = allocate(client, mib)
        check(got == answer, f"{what}: {got}")

    for client in (one, two):
        wait_until(lambda: allocate(client, 0) == (0, 100), "the server has welcomed it")
    out_of_memory = 2  # hipErrorOutOfMemory
    expect(one, 60, (0, 40), "one has more than half of it")
    expect(two, 41, (out_of_memory, 40), "the other one is refused as the runtime refuses")
    one.kill()
    wait_until(lambda: allocate(two, 100) == (0, 0), "what a killed process had is free again")


@test
def a_server_that_hangs_makes_nobody_wait(place):
    # HIP 5.2 takes a time slice of the processor, on a busy machine many, to destroy a stream. Medians of 16 processes each at a load of
    # 20 on two cores, for a hundred streams: natively 100 to 991 ms, with XSched 60 to 918 ms.
    nobody_waits_for_a_server_that_hangs(place, lambda priority: HipClient(place, priority), "streams", hundred_ms=1500)


main(__doc__)
