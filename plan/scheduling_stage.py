"""Stage 3: figures with kernels of known length: which program runs, the overhead, and how soon an urgent program gets the device."""
import statistics
import time

from catalogue import CATALOGUE
from figures import percentile, rate, summary
from kernel_stages import turns
from measure import left_by, p99, together

OVERHEAD_GOAL, OVERHEAD_LIMIT = 3.4, 10  # percent
THRESHOLD = 8
THRESHOLDS = (1, 2, 4, 8, 16, 32)
LENGTHS_MS = (0.5, 1, 2)
LEEWAY_MS = 3  # for other parts of a latency: the task's own kernel, waking, a busy machine
NO_LATENCY = {"XSCHED_PREEMPT_LATENCY_US": "10000000"}  # its greatest value: only the threshold bounds what is in flight


def told(values):
    """The summary of a list of milliseconds, for the metrics."""
    return {name: round(value, 3) for name, value in summary(values).items()}


def side_by_side(bed, workers, job):
    """The rates of two continuous programs in the same time."""
    for worker in workers:
        worker.send(do="continuous", job=job)
    time.sleep(bed.lead + bed.seconds)
    for worker in workers:
        worker.send(do="stop")
    progresses = [worker.stopped()["progress"] for worker in workers]
    begin = max(progress[0][0] for progress in progresses) + bed.lead / 2
    return [rate(progress, begin, begin + bed.seconds) for progress in progresses]


@CATALOGUE.test("3.1", "fixed priority: of two busy programs the urgent one has the device, also after a change of priorities",
                measures=True, seconds=180)
def fixed_priority(bed):
    with bed.server():
        natives, ours = bed.kernel_workers(2, [("-p", 10), ("-p", 0)])
        job = bed.kernel_job(500, 4)
        bed.build(natives + ours, job)
        alone = natives[0].ask(do="rate", job=job, seconds=bed.seconds / 2)["per_second"]
        native = side_by_side(bed, natives, job)
        first = side_by_side(bed, ours, job)
        bed.xsched("hint", "--pid", ours[1].pid, "--priority", 20)
        second = side_by_side(bed, ours, job)
    bed.metrics |= {"kernels per second, alone": alone, "native": native, "XSched, priorities 10 and 0": first,
                    "XSched, priorities 10 and 20": second}
    bed.judge("of its rate alone, native", native[0] / alone)
    bed.judge("of its rate alone, urgent", first[0] / alone, at_least=0.8, goal=0.95)
    bed.judge("of its rate alone, urgent after the change", second[1] / alone, at_least=0.8, goal=0.95)


def cost(native, scheduled):
    """By how many percent the same work takes longer under XSched, from alternating measurements of both rates."""
    return (statistics.median(theirs / ours for theirs, ours in zip(native, scheduled)) - 1) * 100


@CATALOGUE.test("3.2", "runtime overhead: kernels of 20, 100 and 500 µs", measures=True, seconds=240)
def overhead(bed):
    with bed.server():
        workers = [worker for group in bed.kernel_workers(1, [("-p", 0)]) for worker in group]
        for kernel_us in (20, 100, 500):
            command = {"do": "rate", "job": bed.kernel_job(kernel_us, max(4, 2000 // kernel_us)), "seconds": bed.seconds * 0.12}
            turns(bed, workers, command, "per_second", 1)
            native, ours = turns(bed, workers, command, "per_second", 7)
            bed.metrics[f"kernels of {kernel_us} µs, per second"] = {"native": native, "XSched": ours}
            bed.judge(f"{kernel_us} µs, %", cost(native, ours), at_most=OVERHEAD_LIMIT, goal=OVERHEAD_GOAL)


@CATALOGUE.test("3.3", f"preemption latency: kernels of 0.5, 1 and 2 ms, threshold {THRESHOLD}", measures=True, seconds=300)
def preemption_latency(bed):
    with bed.server():
        natives, ours = bed.kernel_workers(
            2, [("-p", 10), ("-p", 0, "--threshold", THRESHOLD),
                ("--scheduler", "APP", "--level", bed.gate_level(), "--threshold", THRESHOLD)])
        task = {"job": bed.kernel_job(100), "rate_hz": 50, "seconds": bed.seconds}
        bed.build(natives + ours, task["job"], *(bed.kernel_job(kernel_ms * 1000, THRESHOLD) for kernel_ms in LENGTHS_MS))
        alone = natives[0].ask(do="task", **task)["latency_ms"]
        bed.metrics["task of 0.1 ms, alone, ms"] = told(alone)
        for kernel_ms in LENGTHS_MS:
            beside_kernels(bed, kernel_ms, alone, task, natives, ours)


def beside_kernels(bed, kernel_ms, alone, task, natives, ours):
    """How much later a short task ends beside such kernels, and how soon a stream of them stops."""
    high, low, own = ours
    busy = {"job": bed.kernel_job(kernel_ms * 1000, THRESHOLD)}
    beside, under = bed.together(), bed.together()
    together(beside, natives[0], natives[1:], task, busy)
    together(under, high, [low], task, busy)
    # The effect of the scheduler on a stream, measured in the program itself.
    stopping = own.ask(do="suspend", job=busy["job"], tries=20 if bed.quick else 100, pause_seconds=3 * THRESHOLD * kernel_ms / 1000)
    of = f"kernels of {kernel_ms:g} ms"
    bed.metrics[of] = {
        "native, ms": told(beside.latencies), "XSched, ms": told(under.latencies),
        "busy program, kernels per second alone": beside.total_before(), "native": beside.total_rate(),
        "XSched": under.total_rate(), "from the call to suspend until the stream stands still, ms": told(stopping["stopped_ms"])}
    bound = THRESHOLD * kernel_ms + LEEWAY_MS
    bed.judge(f"{of}: p99 later than alone, native, ms", p99(beside.latencies) - p99(alone))
    bed.judge(f"{of}: p99 later than alone, XSched, ms", p99(under.latencies) - p99(alone), at_most=bound)
    bed.judge(f"{of}: p90 until a stream stands still, ms", percentile(stopping["stopped_ms"], 0.9), at_most=bound)
    bed.expect(stopping["ran_while_suspended"] == 0, f"{of}: work ended on a suspended stream")
    bed.show_latencies(f"a task of 0.1 ms beside {of}, threshold {THRESHOLD}", alone=alone, native=beside.latencies, XSched=under.latencies)


@CATALOGUE.test("3.4", "thresholds from 1 to 32, kernels of 0.5, 1 and 2 ms: latency of the urgent program, throughput of the other",
                measures=True, seconds=600, quick=False)
def thresholds(bed):
    with bed.server():
        # All programs exist from the beginning. One without work is no competitor.
        (native,), (high, default) = bed.kernel_workers(1, [("-p", 10), ("-p", 0)])
        bed.extra_environment |= NO_LATENCY
        lows = {threshold: bed.torch("-p", 0, "--threshold", threshold, jobs=[], scheduled=True) for threshold in THRESHOLDS}
        bed.ready(lows.values())
        task = {"job": bed.kernel_job(100), "rate_hz": 50, "seconds": bed.seconds / 2}
        bed.build([native, high, default, *lows.values()], task["job"],
                  *(bed.kernel_job(kernel_ms * 1000, max(THRESHOLDS)) for kernel_ms in LENGTHS_MS))
        alone = native.ask(do="task", **task)["latency_ms"]
        results = {kernel_ms: {name: beside_one(bed, high, low, task, kernel_ms)
                               for name, low in [*lows.items(), ("by default", default)]} for kernel_ms in LENGTHS_MS}
    bed.metrics["task of 0.1 ms, alone, ms"] = told(alone)
    left = left_by(alone, task["rate_hz"])
    later, kept = {}, {}
    for kernel_ms, of_length in results.items():
        of = f"kernels of {kernel_ms:g} ms"
        bed.metrics[of] = {f"threshold {name}": {"ms": told(one.latencies), "kernels per second": one.total_rate(),
                                                 "before the task": one.total_before()} for name, one in of_length.items()}
        later[of] = [[name, p99(of_length[name].latencies) - p99(alone)] for name in THRESHOLDS]
        kept[of] = [[name, 100 * of_length[name].total_rate() / (of_length[name].total_before() * left)] for name in THRESHOLDS]
        worst = max(ms - threshold * kernel_ms for threshold, ms in later[of])
        bed.judge(f"{of}: p99 later than alone, beyond threshold × length, worst, ms", worst, at_most=LEEWAY_MS)
        bed.judge(f"{of}, by default: p99 later than alone, ms", p99(of_length["by default"].latencies) - p99(alone))
    bed.plot("how much later a task of 0.1 ms ends (p99) than alone", "threshold", "ms", later, x_doubles=True)
    bed.plot("what the other program keeps of the time that the task leaves", "threshold", "%", kept, x_doubles=True)


def beside_one(bed, high, low, task, kernel_ms):
    result = bed.together()
    together(result, high, [low], task, {"job": bed.kernel_job(kernel_ms * 1000, max(THRESHOLDS))})
    return result
