"""Figure 11: several processes of one priority, which share what is left for them (gpu_task)."""
import statistics
import time

from figures import rate, summary
from kernel_stages import HIGH, LOW, idle_competitor, limit
from measure import LEAD, p99

SERVER = {"kernel_us": 200, "kernels": 100, "keep": True}  # 20 ms, on one stream
# Not in step: the two are at every distance from each other.
RATES_HZ = (10, 9.7)
MIXED_US = (20, 50, 100, 200, 500, 1000, 2000, 5000)
# Requests one after the other, with a wait for each: short bursts of work with gaps, as test suites have them.
SPARSE = [{"kernel_us": kernel_us, "kernels": kernels, "rate_hz": 100_000} for kernel_us in (5, 20, 80) for kernels in (1, 3, 10)]


def urgent_equals(session):
    """Two urgent servers of one priority, beside a continuous program: first come, first served."""
    case = "two servers of 20 ms at 10 Hz, beside kernels of 500 µs"
    seconds = max(session.seconds, 8)
    with session.step("11", case, limit(session, 4) + 4 * seconds), session.server():
        native = [session.kernels() for _ in range(3)]
        ours = [session.kernels(*options, scheduled=True) for options in (HIGH, HIGH, LOW)]
        session.ready(native, ours)
        # Their priorities and their requests become known one by one.
        for worker in ours[:2]:
            worker.ask(do="task", **SERVER, rate_hz=10, seconds=1)
        alone = [worker.ask(do="task", **SERVER, rate_hz=rate_hz, seconds=seconds / 2)["latency_ms"]
                 for worker, rate_hz in zip(native, RATES_HZ)]
        together = {}
        for name, (first, second, rest) in (("native", native), ("xsched", ours)):
            rest.send(do="continuous", kernel_us=500)
            time.sleep(LEAD)
            for worker, rate_hz in zip((first, second), RATES_HZ):
                worker.send(do="task", **SERVER, rate_hz=rate_hz, seconds=seconds)
            together[name] = [worker.receive()["latency_ms"] for worker in (first, second)]
            rest.stop()
        both = sum(p99(latencies) for latencies in alone)
        for i, name in enumerate(("first", "second")):
            session.report.add("11", f"{case}: the {name}", "p99 : own and the other's time", p99(together["xsched"][i]) / both,
                               (None, 1), alone=summary(alone[i]), native=summary(together["native"][i]),
                               xsched=summary(together["xsched"][i]))


def rates_of_continuous(session, workers, sizes_us):
    for worker, kernel_us in zip(workers, sizes_us):
        worker.send(do="continuous", kernel_us=kernel_us)
    time.sleep(LEAD + session.seconds)
    progresses = [worker.stop()["progress"] for worker in workers]
    begin = max(progress[0][0] for progress in progresses) + LEAD / 2
    return [rate(progress, begin, begin + session.seconds) for progress in progresses]


def rates_of_sparse(session, workers, tasks, urgent):
    if urgent is not None:
        urgent.send(do="task", kernel_us=200, kernels=5, rate_hz=70, seconds=LEAD + session.seconds)
    for worker, task in zip(workers, tasks):
        worker.send(do="task", **task, seconds=LEAD + session.seconds)
    rates = [len(worker.receive()["latency_ms"]) for worker in workers]
    return rates, urgent.receive()["latency_ms"] if urgent is not None else []


def low_equals(session):
    """Many processes of one priority below an urgent one: together they lose little, whether it is idle or not."""
    case = "eight with kernels of 20 to 5000 µs, an urgent one idle"
    with session.step("11", case, limit(session, 4)), session.server():
        native = [session.kernels() for _ in MIXED_US]
        ours = [session.kernels(*LOW, scheduled=True) for _ in MIXED_US]
        session.ready(native, ours)
        idle_competitor(session)
        theirs, mine = (rates_of_continuous(session, workers, MIXED_US) for workers in (native, ours))
        # The device's time: kernels are of known length.
        used = [sum(rate_ * size for rate_, size in zip(rates, MIXED_US)) / 1e6 for rates in (theirs, mine)]
        session.report.add("11", case, "device's time : native", used[1] / used[0], (0.97, None), native=used[0], xsched=used[1],
                           details={"native": theirs, "xsched": mine})
    case = "seventeen with gaps, an urgent one of 7 %"
    with session.step("11", case, limit(session, 4)), session.server():
        tasks = [SPARSE[i % len(SPARSE)] for i in range(17)]
        native = [session.kernels() for _ in range(18)]
        ours = [session.kernels(*(LOW if i else HIGH), scheduled=True) for i in range(18)]
        session.ready(native, ours)
        for busy in (False, True):
            (theirs, native_ms), (mine, our_ms) = (
                rates_of_sparse(session, workers[1:], tasks, workers[0] if busy else None) for workers in (native, ours))
            speed = statistics.mean(b / a for a, b in zip(theirs, mine))
            session.report.add("11", case if busy else "seventeen with gaps, none urgent at work", "their speed : native", speed,
                               (0.9, None), native=summary(native_ms) if busy else None, xsched=summary(our_ms) if busy else None,
                               details={"native": theirs, "xsched": mine})


STAGES = {"urgent_equals": urgent_equals, "low_equals": low_equals}
