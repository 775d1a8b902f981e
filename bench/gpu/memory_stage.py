"""What one allocation and its free cost where memory is counted and limited (docs/memory.md): by `xsched run --memory`, and by a tenant's
right. PyTorch's own allocator asks the driver seldom. Pools (`cudaMallocAsync`) and other libraries ask it each time."""
import statistics

from measure import by_turns, report_cost

FIGURE = "memory"
BYTES, EACH, ROUNDS = 512, 3, 8
LIMIT = "16GiB"
# Of one allocation and its free, which are two calls.
GOAL_NS = 200
# (where the memory comes from, the calls, how many of them in one measurement, the goal). cuMemAlloc asks the kernel's driver, which takes
# 70 µs and differs by more than the goal from one measurement to the next.
CALLS = (("pool", "cuMemAllocAsync and cuMemFreeAsync", 20_000, (None, GOAL_NS)), ("driver", "cuMemAlloc and cuMemFree", 1_000, None))


def compare(session, case, *options):
    """Native programs and scheduled ones by turns, several of each, because addresses and with them times differ."""
    native = [session.kernels() for _ in range(EACH)]
    scheduled = [session.kernels(*options, scheduled=True) for _ in range(EACH)]
    session.ready(native, scheduled)
    for source, calls, count, goal in CALLS:
        measured = by_turns(native, scheduled, ROUNDS, **{"do": "allocate", "from": source, "bytes": BYTES, "count": count})
        theirs, ours = ([statistics.median(statistics.median(answer["ns"]) for answer in answers) for answers in programs]
                        for programs in measured)
        report_cost(session.report, FIGURE, f"{calls}, {BYTES} bytes, {case}", theirs, ours, goal)


def memory(session):
    for case, options in (("no limit", ()), (f"--memory {LIMIT}", ("--memory", LIMIT))):
        with session.step(FIGURE, case, 90), session.server():
            compare(session, case, *options)
    tenants = session.new_file()
    tenants.write_text(f"[default]\nmemory = '{LIMIT}'\n", encoding="ascii")
    with session.step(FIGURE, "a tenant's limit", 90), session.server("HPF", "--tenants", str(tenants)):
        compare(session, "a tenant's limit")
