"""What one allocation and its free cost where memory is counted and limited (docs/memory.md): by `xsched run --memory`, and by a tenant's
right. PyTorch's own allocator asks the driver seldom. Pools (`cudaMallocAsync`) and other libraries ask it each time."""
import statistics

from measure import by_turns, report_cost

FIGURE = "memory"
BYTES, COUNT, EACH, ROUNDS = 512, 20_000, 3, 8
LIMIT = "16GiB"
# Of one allocation; an allocation and its free are two calls.
GOAL_NS = 200
CALLS = {"pool_ns": "cuMemAllocAsync and cuMemFreeAsync, 512 bytes", "direct_ns": "cuMemAlloc and cuMemFree, 512 bytes"}


def compare(session, case, *options):
    """Native programs and scheduled ones by turns, several of each, because addresses and with them times differ."""
    native = [session.kernels() for _ in range(EACH)]
    scheduled = [session.kernels(*options, scheduled=True) for _ in range(EACH)]
    session.ready(native, scheduled)
    measured = by_turns(native, scheduled, ROUNDS, do="allocate", bytes=BYTES, count=COUNT)
    for call, name in CALLS.items():
        theirs, ours = ([statistics.median(statistics.median(answer[call]) for answer in answers) for answers in programs]
                        for programs in measured)
        report_cost(session.report, FIGURE, f"{name}, {case}", theirs, ours, (None, GOAL_NS) if call == "pool_ns" else None)


def memory(session):
    for case, options in (("no limit", ()), (f"--memory {LIMIT}", ("--memory", LIMIT))):
        with session.step(FIGURE, case, 90), session.server():
            compare(session, case, *options)
    tenants = session.new_file()
    tenants.write_text(f"[default]\nmemory = '{LIMIT}'\n", encoding="ascii")
    with session.step(FIGURE, "a tenant's limit", 90), session.server("HPF", "--tenants", str(tenants)):
        compare(session, "a tenant's limit")
