#!/usr/bin/env python3
"""Every policy with real OpenCL programs: two that always have work, and get a policy and hints while they run."""
import pathlib
import time

from harness import check, main, test, wait_until
from opencl_program import OpenClClient

POLICIES = pathlib.Path(__file__).resolve().parents[2] / "src/sched/policy"
EQUAL = 50
# What the first program has of the device, in percent, if the first one is given these options of `xsched hint`, and the second one those.
SHARES = {
    "CFS": (100 * 1.2**5 / (1.2**5 + 1), ("--priority", 5), ()),
    "EEVDF": (75, ("--weight", 300), ("--weight", 100)),
    "MLFQ": (EQUAL, (), ()),
    "PUP": (75, ("--utilization", 75), ("--utilization", 25)),
    "RESERVE": (80, ("--guarantee-us", 60000, "--period-us", 100000), ()),  # and half of the rest
    "SPUP": (75, ("--utilization", 75), ("--utilization", 25)),
    "UP": (75, ("--utilization", 75), ("--utilization", 25)),
}
# With these options, the first program has the device for itself.
FIRST = {
    "AWF": (("--window-active",), ()),
    "HHPF": (("--priority", 5), ()),
    "HPF": (("--priority", 5), ()),
    "KEDF": (("--deadline-us", 60_000_000), ("--deadline-us", 600_000_000)),  # one request each, as they never pause
    "LAX": (("--priority", 5), ()),
}
# How far a share may be from the one asked for. Natively both have 50 %, on a loaded machine 45 to 55 %. On some machines, by turns, the
# first one does 85 % of the work if 75 % of the time were asked for. It is supposed that who has less of the time loses more to cold caches
# and to threads that wake; that was not shown.
TOLERANCE = 15


def start(place):
    """Two programs, of equal rank, that share the device as its driver lets them."""
    place.start_server()
    clients = [OpenClClient(place, "busy", "layer") for _ in range(2)]
    wait_until(lambda: len(place.queues()) == 2 and all(client.progress() > 2 for client in clients), "both work")
    return clients


def tell(place, *arguments):
    told = place.tool(*map(str, arguments))
    check(told.returncode == 0, f"xsched {' '.join(map(str, arguments))}: {told.stderr}")


def hint(place, client, *options):
    if options:
        tell(place, "hint", "--pid", client.process.pid, *options)


def share_of_first(clients, before):
    first, second = (client.progress() - was for client, was in zip(clients, before))
    return 100 * first / max(1, first + second)


def goes_on_alone(first, second):
    """When the first one has gone, the second one has the device, and none has seen a wrong result."""
    first.end()
    before = second.progress()
    wait_until(lambda: second.progress() > before + 5, "the second one goes on alone")
    check(second.process.poll() is None, f"with right results: {second.lines[-3:]}")
    check(not [line for line in first.lines + second.lines if "failed" in line], "as has the first one")


def has_its_share(place, policy):
    percent, options, others = SHARES[policy]
    first, second = clients = start(place)
    tell(place, "policy", "set", policy)
    hint(place, first, *options)
    hint(place, second, *others)
    time.sleep(0.2)
    before, begin = [client.progress() for client in clients], time.monotonic()
    wait_until(lambda: time.monotonic() > begin + 2 and abs(share_of_first(clients, before) - percent) <= TOLERANCE,
               lambda: f"{policy}: {percent:.0f} % for the first one: it has {share_of_first(clients, before):.1f}", 20)
    goes_on_alone(first, second)


def has_the_device(place, policy):
    first, second = clients = start(place)
    tell(place, "policy", "set", policy)
    options, others = FIRST[policy]
    hint(place, first, *options)
    hint(place, second, *others)
    keeps_the_other_off(place, clients)


def keeps_the_other_off(place, clients):
    first, second = clients
    wait_until(lambda: any(q["pid"] == second.process.pid and q["state"] == "held" for q in place.queues()), "the second one is held")
    time.sleep(0.1)  # what was in flight
    before = [client.progress() for client in clients]
    wait_until(lambda: first.progress() > before[0] + 20, "the first one works")
    check(second.progress() <= before[1] + 1, "the second one stands still")
    goes_on_alone(first, second)


def works(place, policy):
    """Of a policy about which nothing else is known here: both get on, or whoever remains does."""
    first, second = clients = start(place)
    tell(place, "policy", "set", policy)
    before = sum(client.progress() for client in clients)
    wait_until(lambda: sum(client.progress() for client in clients) > before + 20, "the device is in use")
    goes_on_alone(first, second)


@test
def the_process_of_the_better_nice_value_has_the_device_under_CHPF(place):
    place.start_server("--policy", "CHPF")
    first = OpenClClient(place, "busy", "layer")
    second = OpenClClient(place, "busy", "layer", prefix=("nice", "-n", "10"))
    wait_until(lambda: len(place.queues()) == 2 and first.progress() > 2, "both are here")
    keeps_the_other_off(place, (first, second))


def test_policies():
    """One test for each policy's file, so that a new policy has one, too."""
    for path in sorted(POLICIES.glob("*.cc")):
        policy = path.stem.upper()
        if path.stem.endswith("_test") or policy == "CHPF":
            continue
        for cases, does, says in ((SHARES, has_its_share, "programs_have_their_shares"), (FIRST, has_the_device, "the_first_has_the_device")):
            if policy in cases:
                break
        else:
            does, says = works, "programs_get_on"

        def run(place, does=does, policy=policy):
            does(place, policy)
        run.__name__ = f"{says}_under_{policy}"
        test(run)


if __name__ == "__main__":
    test_policies()
    main(__doc__)
