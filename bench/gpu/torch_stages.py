"""The figures with PyTorch (torch_task.py)."""
import os
import statistics

from figures import summary
from kernel_stages import HIGH, LOW, idle_competitor, report_kept, report_latency, turns
from measure import EAGER_ROUNDS, LEAD, Together, by_turns, left_by, p99, report_cost, together, two_in_one
from worker import WorkerError

STARTING = 90  # seconds that importing frameworks and building networks may take


def together_rounds(session, native, scheduled, task, continuous, rounds=2):
    """(latencies alone, native, XSched), as in measure_beside. The first program of each is the urgent one."""
    session.ready(native, scheduled)
    task = dict(task, seconds=session.seconds * 1.5 / rounds)
    alone_ms, beside, ours = [], Together(), Together()
    for _ in range(rounds):
        alone_ms += native[0].ask(do="task", **task)["latency_ms"]
        together(beside, native[0], native[1:], task, continuous)
        together(ours, scheduled[0], scheduled[1:], task, continuous)
    return alone_ms, beside, ours


def limit(session, steps):
    return STARTING + steps * (session.seconds * 1.5 + 4 * LEAD) * 1.5


def torch_alone(session):
    """Figure 1, networks: throughput under XSched without and with an idle competitor. Those without graphs are bound by the processor. One
    core is faster than another one, and so is one process, because its addresses differ. So several processes of each kind use the same
    cores, one of them for autograd's thread."""
    jobs = {f"{model} {'training' if train else 'inference'}, {'graph' if graph else 'eager'}":
            {"model": model, "batch": 32, "train": train, "graph": graph}
            for model in ("resnet50", "bert") for train in (False, True) for graph in (False, True)}
    seconds = session.seconds * 0.08
    each, rounds = 3, 7  # of the eager ones
    cores = sorted(os.sched_getaffinity(0))[-2:]
    with session.step("1", "networks", STARTING + 16 * 30 * seconds + 60), session.server():
        every = list(jobs.values())
        eager = [job for job in every if not job["graph"]]
        native, scheduled = ([session.torch(*options, jobs=every if i == 0 else eager, scheduled=bool(options)) for i in range(each)]
                             for options in ((), LOW))
        session.ready(native, scheduled)
        for competitor in (False, True):
            if competitor:
                idle_competitor(session)
            for case, job in jobs.items():
                case += ", idle competitor" if competitor else ""
                programs = 1 if job["graph"] else each
                command = {"do": "rate", "job": job, "seconds": seconds, **({} if job["graph"] else {"cores": cores})}
                try:
                    answers = by_turns(native[:programs], scheduled[:programs], rounds, **command)
                except WorkerError as error:
                    session.report.note("1", case, f"failed: {error}")
                    continue
                theirs, ours = ([[answer["per_second"] for answer in of_one] for of_one in of_kind] for of_kind in answers)
                typical = [statistics.median(map(statistics.median, of_kind)) for of_kind in (theirs, ours)]
                session.report.add("1", case, "time : native", typical[0] / typical[1], (None, 1.01), native=typical[0], xsched=typical[1],
                                   details={"native_per_s": theirs, "xsched_per_s": ours})


def torch_operator(session):
    """Figure 1, an eager operator: what `x.add_(0)` costs on one core. Addresses differ in each process, and with them the time of an
    operator by some 100 ns, so there are several processes of each kind."""
    each, count, rounds = 6, 20_000, 12
    core = sorted(os.sched_getaffinity(0))[-1]
    with session.step("1", "an eager operator", STARTING * 2 + 60), session.server():
        native = [session.torch(jobs=[]) for _ in range(each)]
        scheduled = [session.torch(jobs=[], scheduled=True) for _ in range(each)]
        session.ready(native, scheduled)
        for competitor in (False, True):
            if competitor:
                idle_competitor(session)
            theirs, ours = ([statistics.median(answer["operator_ns"] for answer in answers) for answers in programs]
                            for programs in by_turns(native, scheduled, rounds, do="operators", count=count, core=core))
            report_cost(session.report, "1", "x.add_(0), eager, one core" + (", idle competitor" if competitor else ""), theirs, ours,
                        (None, 60))


def torch_pair(session):
    """Figure 2, networks: ResNet-152 at 20 Hz beside ResNet-50 continuously, in two processes."""
    case = "ResNet-152 graph at 20 Hz beside ResNet-50"
    task = {"job": {"model": "resnet152", "batch": 8, "graph": True}, "rate_hz": 20}
    continuous = {"job": {"model": "resnet50", "batch": 1024}}
    with session.step("2", case, limit(session, 3)), session.server():
        native = [session.torch(jobs=[program["job"]]) for program in (task, continuous)]
        scheduled = [session.torch(*options, jobs=[program["job"]], scheduled=True)
                     for program, options in ((task, HIGH), (continuous, LOW))]
        alone_ms, native, ours = together_rounds(session, native, scheduled, task, continuous)
        session.report.add("2", case, "p99, ms", p99(ours.latencies), (None, 4.9), alone=summary(alone_ms),
                           native=summary(native.latencies), xsched=summary(ours.latencies),
                           details={"alone_ms": alone_ms, "native_ms": native.latencies, "xsched_ms": ours.latencies})
        report_kept(session.report, "2", case, alone_ms, task["rate_hz"], native, ours, 0.97)


def torch_threads(session):
    """Figure 3, networks: ResNet-18 as a graph beside ResNet-50 in another thread of the process."""
    case = "ResNet-18 graph at 20 Hz beside ResNet-50, threads"
    high = {"model": "resnet18", "batch": 1, "dtype": "fp32", "graph": True, "hint": 10}
    preferred = {**high, "stream_priority": -5}  # by the driver
    low = {"model": "resnet50", "batch": 1024, "dtype": "fp32"}
    rounds = 2
    with session.step("3", case, limit(session, 4)), session.server():
        native, scheduled = session.torch(jobs=[high, preferred, low]), session.torch(jobs=[high, low], scheduled=True)
        session.ready([native, scheduled])
        task = {"rate_hz": 20, "seconds": session.seconds * 1.5 / rounds}
        command = {"do": "two_threads", "high": high, "low": low, **task}
        alone_ms, beside, beside_preferred, ours = [], Together(), Together(), Together()
        for _ in range(rounds):
            alone_ms += native.ask(do="task", job=high, **task)["latency_ms"]
            two_in_one(beside, native, command)
            two_in_one(beside_preferred, native, {**command, "high": preferred})
            two_in_one(ours, scheduled, command)
        session.report.add("3", case, "p99, ms", p99(ours.latencies), (None, 3), alone=summary(alone_ms),
                           native=summary(beside.latencies), xsched=summary(ours.latencies),
                           details={"alone_ms": alone_ms, "native_ms": beside.latencies, "xsched_ms": ours.latencies})
        session.report.add("3", f"{case}, natively by the driver's priority", "p99, ms", p99(beside_preferred.latencies),
                           native=summary(beside_preferred.latencies), details={"native_ms": beside_preferred.latencies})
        # Compared with its native rate beside the same task.
        kept = ours.total_rate() / beside.total_rate()
        session.report.add("3", case, "the other : native", kept, (0.98, None), alone=beside.total_before(),
                           native=beside.total_rate(), xsched=ours.total_rate(),
                           details={"left_by_task": left_by(alone_ms, 20)})


def bert_six(session):
    """Figure 7: six processes with BERT-base, one of them urgent."""
    case = "six BERT-base processes"
    job = {"model": "bert", "batch": 8}
    with session.step("7", case, limit(session, 3) + STARTING), session.server():
        native = [session.torch(jobs=[job]) for _ in range(6)]
        scheduled = [session.torch(*(LOW if index else HIGH), jobs=[job], scheduled=True) for index in range(6)]
        alone_ms, beside, ours = together_rounds(session, native, scheduled, {"job": job, "rate_hz": 20}, {"job": job}, EAGER_ROUNDS)
        report_latency(session.report, "7", case, alone_ms, beside, ours, 1.3)
        report_kept(session.report, "7", case, alone_ms, 20, beside, ours)
