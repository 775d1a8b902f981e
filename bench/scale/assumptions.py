"""What the simulation of a site assumes. All of it is here, each with its source; docs/deploy/scale.md explains it.

The traces themselves are not at hand: what is drawn follows the statistics below, which others have published of them.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Assumptions:
    # ---- the site ----
    nodes: int = 1000
    gpus_per_node: int = 8
    # Part of the GPUs that stay whole in any case: jobs over several GPUs, and what may not be shared. Ours.
    unshared: float = 0.3
    # Of the others, part that has a replica of a service; the rest has a training or batch job. Ours.
    services: float = 0.5

    # ---- services ----
    # How busy a program keeps its GPU, averaged over its life: (quantile, utilization), linear in between. Alibaba, GPU trace of 2020
    # (3.0 million instances): mean 10.5 %, median 1.5 %, 34.5 % of them 0, 75.4 % below 10 %, 5 % at 50 % or more.
    utilization: tuple = ((0, 0), (0.345, 0), (0.5, 0.015), (0.754, 0.1), (0.95, 0.5), (1, 1))
    utilization_factor: float = 1.0  # for the sensitivity
    # The rate of requests at the busiest hour : that of the whole day. Ours: a sinusoid that falls to 0 would have 2.
    peak: float = 2.0
    # No service is planned for more than this at its busiest hour; a busier one has more replicas.
    most_at_peak: float = 0.8
    # Services are simulated at these average utilizations, each rounded up.
    levels: tuple = (0.01, 0.05, 0.1, 0.2, 0.4)
    # What a request does: (commands, length of each in ns), equally frequent. The requests of docs/benchmarks/h200.md: small kernels, a
    # CUDA graph of ResNet-152, and a longer one as of a language model.
    requests: tuple = ((5, 200_000), (1, 3_790_000), (20, 1_000_000))
    # GPU memory of a program, as a part of the GPU's: (part, how frequent). Ours.
    service_memory: tuple = ((0.1, 0.5), (0.25, 0.3), (0.5, 0.2))

    # ---- jobs ----
    # The part of the time for which a job keeps its GPU busy: (part, how frequent). Microsoft, Philly (2017): of the machines' minutes,
    # 25 % are idle in jobs of more than a day, and 49 % in those of less than 6 hours. Here they pause after each 100 commands of 1 ms.
    job_busy: tuple = ((0.5, 0.25), (0.75, 0.5), (1.0, 0.25))
    job_commands: int = 100
    job_command_ns: int = 1_000_000
    job_memory: tuple = ((0.25, 0.4), (0.5, 0.4), (0.8, 0.2))
    # A job may become slower by this part, over the day.
    job_slowdown: float = 0.1

    # ---- one shared GPU ----
    device: str = "NVIDIA H200"
    most_on_gpu: int = 8  # programs
    seconds: float = 60  # simulated, for each mix
    seed: int = 1

    # Services may have a p99 of so many times the one that they have alone.
    targets: tuple = (1.1, 1.25, 1.5, 2, 3, 5, 10)
    # How many programs the driver's time slicing has on a GPU where nobody looks at the latency.
    replicas: int = 4


# What the result may depend on: a name, and what is different. Nothing of what `SharedGpu` reads.
SENSITIVITY = (
    ("as assumed", {}),
    ("services half as busy", {"utilization_factor": 0.5}),
    ("services twice as busy", {"utilization_factor": 2.0}),
    ("nothing must stay whole", {"unshared": 0.0}),
    ("60 % must stay whole", {"unshared": 0.6}),
    ("80 % services", {"services": 0.8}),
    ("20 % services", {"services": 0.2}),
    ("jobs may become 2 % slower", {"job_slowdown": 0.02}),
    ("jobs may become 25 % slower", {"job_slowdown": 0.25}),
    ("services need half the memory", {"service_memory": ((0.05, 0.5), (0.125, 0.3), (0.25, 0.2))}),
)
