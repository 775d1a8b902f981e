"""Stage 4: PyTorch, from a tensor on the device to networks that share the device."""
import time

from catalogue import CATALOGUE
from coverage_stage import compare
from figures import percentile
from kernel_stages import HIGH, LOW, turns
from measure import left_by, p99, together
from scheduling_stage import OVERHEAD_GOAL, OVERHEAD_LIMIT, cost, told

# The baselines of the field reports were measured with these.
BATCH, BATCH_NEEDS_GIB = 1024, 64

STEPS = (("basics", ("tensor_on_device", "small_allocations_and_frees"), "step 1: a tensor on the device"),
         ("basics", ("randn_on_device",), "step 2: random numbers made on the device"),
         ("basics", ("matmul",), "step 3: matrix products"),
         ("basics", ("conv2d",), "step 4: a convolution"),
         ("basics", ("small_mlp", "small_cnn", "small_transformer"), "step 5: small networks, trained"),
         ("networks", ("resnet18",), "ResNet-18, forward and trained"),
         ("networks", ("resnet50",), "ResNet-50, forward and trained"),
         ("networks", ("mobilenet",), "MobileNet, forward and trained"),
         ("networks", ("bert_base",), "BERT-base, forward and trained"))


def register_steps():
    for index, (group, checks, name) in enumerate(STEPS):
        def step(bed, group=group, checks=checks):
            compare(bed, group, *checks)
        CATALOGUE.test(f"4.{1 + index}", f"{name}: results are those without XSched", seconds=300)(step)


register_steps()


@CATALOGUE.test("4.10", "networks alone: what being under XSched costs", measures=True, seconds=420)
def networks_alone(bed):
    jobs = {"ResNet-50 inference": {"model": "resnet50", "batch": 32}, "ResNet-50 training": {"model": "resnet50", "batch": 32, "train": True},
            "BERT-base inference": {"model": "bert", "batch": 32}}
    with bed.server():
        every = list(jobs.values())
        workers = [bed.torch(jobs=every), bed.torch(*LOW, jobs=every, scheduled=True)]
        bed.ready(workers)
        for case, job in jobs.items():
            native, ours = turns(bed, workers, {"do": "rate", "job": job, "seconds": bed.seconds * 0.2}, "per_second", 5)
            bed.metrics[f"{case}, samples per second"] = {"native": native, "XSched": ours}
            bed.judge(f"{case}, %", cost(native, ours), at_most=OVERHEAD_LIMIT, goal=OVERHEAD_GOAL)


def beside(bed, task, busy, others=1):
    """An urgent network at a fixed rate beside others that never pause: alone, natively and under XSched."""
    with bed.server():
        natives = [bed.torch(jobs=[job["job"]]) for job in [task] + [busy] * others]
        ours = [bed.torch(*(LOW if index else HIGH), jobs=[job["job"]], scheduled=True)
                for index, job in enumerate([task] + [busy] * others)]
        bed.ready(natives, ours)
        timed = dict(task, seconds=max(bed.seconds, 3.0))
        alone = natives[0].ask(do="task", **timed)["latency_ms"]
        native, scheduled = bed.together(), bed.together()
        together(native, natives[0], natives[1:], timed, busy)
        together(scheduled, ours[0], ours[1:], timed, busy)
    left = left_by(alone, task["rate_hz"])
    bed.metrics |= {"alone, ms": told(alone), "native, ms": told(native.latencies), "XSched, ms": told(scheduled.latencies),
                    "others, samples per second alone": native.total_before(), "others, native": native.total_rate(),
                    "others, XSched": scheduled.total_rate(), "seconds before the task begins": bed.lead}
    bed.show_latencies("the urgent network", alone=alone, native=native.latencies, XSched=scheduled.latencies)
    # If the others do not disturb it, there is nothing to gain. Noise must not fail the test then.
    floor = max(p99(native.latencies), 1.2 * p99(alone))
    bed.judge("p99 alone, ms", p99(alone))
    bed.judge("p99 native, ms", p99(native.latencies))
    bed.judge("p99 XSched, ms", p99(scheduled.latencies), at_most=floor, goal=1.5 * p99(alone))
    bed.judge("others keep, of what the task leaves", scheduled.total_rate() / (native.total_before() * left), at_least=0.5, goal=0.9)


@CATALOGUE.test("4.11", "two processes: ResNet-18 at 20 requests a second beside ResNet-50", measures=True, seconds=420)
def resnets(bed):
    memory = bed.machine.answers["torch"].get("memory_gib", 0)
    batch = BATCH
    while batch > 32 and memory < BATCH_NEEDS_GIB * batch / BATCH:
        batch //= 2
    bed.metrics["batch of ResNet-50"] = batch
    beside(bed, {"job": {"model": "resnet18", "batch": 1, "dtype": "fp32"}, "rate_hz": 20},
           {"job": {"model": "resnet50", "batch": batch, "dtype": "fp32"}})


@CATALOGUE.test("4.12", "six processes with BERT-base, one of them urgent", measures=True, seconds=420)
def bert_in_six(bed):
    job = {"model": "bert", "batch": 8}
    beside(bed, {"job": job, "rate_hz": 20}, {"job": job}, others=5)


@CATALOGUE.test("4.13", "six processes with BERT-base in three classes, two in each", measures=True, seconds=420)
def bert_in_three_classes(bed):
    in_three_classes(bed, {"model": "bert", "batch": 8})


# Names and priorities. Those of the last class never pause. Each process of the others leaves most of the device free.
CLASSES = {"urgent": 20, "middle": 10, "low": 0}
EACH = 2
LOAD_EACH, HIGHEST_RATE_HZ = 0.1, 20


def in_three_classes(bed, job):
    with bed.server():
        natives = {name: [bed.torch(jobs=[job]) for _ in range(EACH)] for name in CLASSES}
        ours = {name: [bed.torch("-p", priority, jobs=[job], scheduled=True) for _ in range(EACH)]
                for name, priority in CLASSES.items()}
        bed.ready(*natives.values(), *ours.values())
        task = {"job": job, "rate_hz": HIGHEST_RATE_HZ, "seconds": max(bed.seconds, 3.0)}
        alone = natives["urgent"][0].ask(do="task", **task)["latency_ms"]
        task["rate_hz"] = min(HIGHEST_RATE_HZ, LOAD_EACH * 1000 / percentile(alone, 0.5))
        native, scheduled = (one_round_of_classes(bed, workers, task) for workers in (natives, ours))
    bed.metrics |= {"requests per second, each of four": task["rate_hz"], "alone, ms": told(alone)}
    for name in ("urgent", "middle"):
        bed.metrics |= {f"{name}, native, ms": told(native[name]), f"{name}, XSched, ms": told(scheduled[name])}
        bed.show_latencies(f"the {name} class", alone=alone, native=native[name], XSched=scheduled[name])
        bed.judge(f"{name}: p99 native, ms", p99(native[name]))
    bed.metrics |= {"low, samples per second, native": native["low"], "low, XSched": scheduled["low"]}
    floor = max(p99(native["urgent"]), 1.2 * p99(alone))
    bed.judge("urgent: p99 XSched, ms", p99(scheduled["urgent"]), at_most=floor, goal=1.5 * p99(alone))
    # It waits for the urgent one, but not for the low one.
    bed.judge("middle: p99 XSched, ms", p99(scheduled["middle"]), goal=max(p99(native["middle"]), 3 * p99(alone)))
    left = 1 - 2 * EACH * (1 - left_by(alone, task["rate_hz"]))
    bed.judge("low: keeps, of what the others leave", scheduled["low"] / (scheduled["low before"] * left), at_least=0.5, goal=0.9)


def one_round_of_classes(bed, workers, task):
    """The latencies of both upper classes; the total rate of the lowest one, before and beside them."""
    result = bed.together()
    for low in workers["low"]:
        low.send(do="continuous", job=task["job"])
    time.sleep(result.lead)
    upper = [(name, worker) for name in ("urgent", "middle") for worker in workers[name]]
    for _, worker in upper:
        worker.send(do="task", **task)
    answers = [(name, worker.receive()) for name, worker in upper]
    for low in workers["low"]:
        low.send(do="stop")
    common = {"begin": max(answer["begin"] for _, answer in answers), "end": min(answer["end"] for _, answer in answers),
              "latency_ms": []}
    result.add(common, [low.stopped()["progress"] for low in workers["low"]])
    return {"low": result.total_rate(), "low before": result.total_before(),
            **{name: [ms for of, answer in answers if of == name for ms in answer["latency_ms"]] for name in ("urgent", "middle")}}
