#!/usr/bin/env python3
"""Several CUDA processes of one tenant, which has a limit of memory: they have no more together, and get back what one of them had."""
import json
import os
import pathlib
import signal

from harness import Client, check, main, test, wait_until

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
MIB = 1 << 20


class Program(Client):
    """A cuda_client under the shim."""

    def __init__(self, place, **env):
        self.start(place, [str(place.bin / "cuda_client"), "idle", "1000", "60"],
                   {"LD_PRELOAD": str(place.lib / "libshimcuda.so"), "STANDIN_CUDA_SHARED": place.folder, "XSCHED_AUTO_XQUEUE": "ON", **env})

    def ask(self, request, answer):
        """What it answers, in numbers."""
        before = len([line for line in list(self.lines) if line.startswith(answer)])
        self.say(request)
        lines = lambda: [line for line in list(self.lines) if line.startswith(answer)]  # noqa: E731
        wait_until(lambda: len(lines()) > before, lambda: f"it answers {request}: {self.lines[-3:]}")
        return [int(word) for word in lines()[-1].split() if word.isdigit()]

    def allocate(self, mib):
        return self.ask(f"allocate {mib}", "allocated")[0]

    def free(self):
        return self.ask("free", "freed")[0]

    def memory(self):
        """(free, total), in MiB."""
        return tuple(self.ask("memory", "memory"))


def rules(name, memory):
    return f'[[tenant]]\nname = "{name}"\nusers = [{os.getuid()}]\n' + (f'memory = "{memory}MiB"\n' if memory else "")


# A file without any limit would say that nobody need count.
OTHER = '[[tenant]]\nname = "other"\nusers = [65000]\nmemory = "1GiB"\n'


def limited(place, **env):
    """A program that has its server's welcome, which may come late on a busy machine."""
    program = Program(place, **env)
    wait_until(lambda: program.memory()[1] <= 100, "it has a limit")
    return program


def begin(place, memory=100):
    place.rules = pathlib.Path(place.folder) / "tenants.toml"
    place.rules.write_text(rules("mine", memory))
    place.start_server("--user", "--tenants", str(place.rules))


def reload(place, text):
    place.rules.write_text(text)
    place.server.send_signal(signal.SIGHUP)


def tenant(place, name="mine"):
    known = {one["tenant"]: one for one in json.loads(place.tool("tenants", "--json").stdout)}
    return known.get(name, {"memory_used": None, "memory_limit": None})


def used(place, name="mine"):
    value = tenant(place, name)["memory_used"]
    return None if value is None else value // MIB


@test
def processes_of_a_tenant_have_no_more_than_its_limit_together(place):
    begin(place)
    one, two = limited(place), limited(place)
    check(one.memory() == (100, 100), "the limit is what a program sees of the device")
    check(one.allocate(60) == 0 and two.allocate(30) == 0, "as much as it may have")
    check(one.memory() == two.memory() == (10, 100), "both see what is left")
    check(two.allocate(11) == OUT_OF_MEMORY, "more is refused with the driver's error")
    check(two.memory() == (10, 100), "and does not count")
    check((used(place), tenant(place)["memory_limit"]) == (90, 100 * MIB), "the server knows")
    check("0.09 of 0.10 GiB" in place.tool("tenants").stdout, "and shows it")
    check(one.free() == 0 and two.allocate(70) == 0, "what one gives back the other one gets")
    check(used(place) == 100, "all of it")


@test
def what_a_killed_process_had_is_free_again(place):
    begin(place)
    one, two = limited(place), limited(place)
    check(one.allocate(90) == 0 and two.allocate(20) == OUT_OF_MEMORY, "one has almost all")
    one.kill()
    wait_until(lambda: used(place) == 0, "the server sees that it has gone")
    check(two.allocate(100) == 0, "the other one may have all")


@test
def a_process_that_is_stopped_keeps_its_memory_and_delays_nobody(place):
    begin(place)
    one, two = limited(place), limited(place)
    check(one.allocate(60) == 0, "it has some")
    one.kill(signal.SIGSTOP)
    check(two.allocate(41) == OUT_OF_MEMORY and two.allocate(40) == 0, "it counts")


@test
def without_the_server_nothing_is_limited_and_the_next_one_knows_what_each_has(place):
    begin(place)
    one, two = limited(place), limited(place)
    check(one.allocate(60) == 0 and two.allocate(60) == OUT_OF_MEMORY, "there is a limit")
    place.server.kill()
    place.server.wait()
    os.unlink(place.socket)
    wait_until(lambda: two.allocate(60) == 0, "there is none")
    check(two.memory()[1] > 100, "a program sees the whole device")
    place.start_server("--user", "--tenants", str(place.rules))
    wait_until(lambda: used(place) == 120, lambda: f"the next server knows: {used(place)}")
    check(one.memory() == (0, 100), "nothing is left")
    check(one.allocate(1) == OUT_OF_MEMORY, "the limit counts again")
    check(two.free() == 0 and one.allocate(40) == 0, "and there is room for what fits")


@test
def a_file_that_is_read_again_counts_at_once(place):
    begin(place)
    one, two = limited(place), limited(place)
    check(one.allocate(60) == 0 and two.allocate(30) == 0, "they have 90")
    reload(place, rules("mine", 200))
    wait_until(lambda: one.memory() == (110, 200), "more")
    reload(place, rules("mine", 50))
    wait_until(lambda: one.memory() == (0, 50), "less than they have")
    check(one.allocate(1) == OUT_OF_MEMORY and one.free() == 0, "nobody gets more, and nothing is taken away")
    check(one.memory() == (20, 50), "by what the other one still has")
    reload(place, "[[tenant")
    reload(place, rules("mine", None) + OTHER)
    wait_until(lambda: one.memory()[1] > 200, "without a limit")
    check(one.allocate(500) == 0 and used(place) == 530, "it is counted all the same")


@test
def a_process_that_becomes_one_of_another_tenant_takes_its_memory_along(place):
    begin(place)
    one, two = limited(place), limited(place)
    check(one.allocate(60) == 0 and two.allocate(30) == 0, "they have 90")
    reload(place, rules("theirs", 300))
    wait_until(lambda: used(place, "theirs") == 90, "in the other tenant's account")
    wait_until(lambda: one.memory() == (210, 300), "under its limit")
    check(not used(place), "and not in the former one, if that is still there")


@test
def a_program_s_own_limit_counts_as_well(place):
    begin(place)
    one, two = limited(place, XSCHED_MEMORY="50MiB"), limited(place)
    wait_until(lambda: used(place) is not None and one.memory() == (50, 50), "the lesser one is seen")
    check(one.allocate(51) == OUT_OF_MEMORY and one.allocate(20) == 0, "and counts")
    check(two.allocate(75) == 0 and one.memory() == (5, 50), "beside what others have")
    check(one.allocate(6) == OUT_OF_MEMORY and one.allocate(5) == 0, "so does the tenant's")


@test
def where_no_tenant_is_limited_nothing_is_counted(place):
    begin(place, memory=None)
    one = Program(place)
    check(one.allocate(60) == 0 and one.memory()[1] > 1000, "the device is as it is")
    check(used(place) == 0, "and nobody counts")
    reload(place, rules("mine", 10))
    check(limited(place).memory() == (10, 10), "a limit that is set now counts for programs that begin now")
    check(one.allocate(100) == 0 and one.free() == 0, "the other one goes on without")


if __name__ == "__main__":
    main(__doc__)
