"""The programs of a site, drawn from the assumptions: how many there are of each kind."""
import collections
import dataclasses
import random


@dataclasses.dataclass(frozen=True, order=True)
class Kind:
    """Programs that are alike. A service has `commands` per request; a job has 0 there."""
    busy: float  # part of the GPU's time that it needs, over the day
    memory: float  # part of the GPU's
    commands: int
    command_ns: int

    @property
    def is_service(self):
        return self.commands > 0

    def load(self, assumed):
        """What it needs of the GPU at its busiest hour."""
        return self.peak_busy(assumed) if self.is_service else self.busy

    def peak_busy(self, assumed):
        return min(self.busy * assumed.peak, assumed.most_at_peak)


def quantile(points, at):
    """The value at this quantile, linear between the points."""
    for (low, value), (high, next_value) in zip(points, points[1:]):
        if at <= high:
            return value + (next_value - value) * (at - low) / (high - low)
    raise ValueError(at)


def _weighted(rng, choices):
    return rng.choices([value for value, _ in choices], [weight for _, weight in choices])[0]


def _draw(assumed, rng):
    if rng.random() >= assumed.services:
        return Kind(_weighted(rng, assumed.job_busy), _weighted(rng, assumed.job_memory), 0, assumed.job_command_ns)
    busy = quantile(assumed.utilization, rng.random()) * assumed.utilization_factor
    level = next((level for level in assumed.levels if busy <= level), assumed.levels[-1])
    return Kind(level, _weighted(rng, assumed.service_memory), *rng.choice(assumed.requests))


def draw(assumed):
    """One program for each GPU that may be shared: how many of each kind."""
    rng = random.Random(assumed.seed)
    count = round(assumed.nodes * assumed.gpus_per_node * (1 - assumed.unshared))
    return collections.Counter(_draw(assumed, rng) for _ in range(count))
