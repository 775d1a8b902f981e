"""What happens on one GPU that several programs share: `xsched simulate` says it, with the scheduler's own code and a device model that
was measured. Each mix of loads is simulated once."""
import dataclasses
import functools
import json
import math
import subprocess
import tempfile

TIME_SLICING = "native"
XSCHED = "HPF"
POLICIES = (TIME_SLICING, XSCHED)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """For each program: a service's p99 : p99 alone, or the part of its speed that a job keeps."""
    slowdowns: tuple
    kept: tuple

    def is_fine(self, target, job_slowdown):
        return all(ratio <= target for ratio in self.slowdowns) and all(part >= 1 - job_slowdown for part in self.kept)


def _p99(queue):
    """Infinite, if no request was done."""
    return queue.get("p99_ms", math.inf)


class SharedGpu:
    def __init__(self, xsched, assumed):
        self._xsched = xsched
        self._assumed = assumed
        self.simulated = 0
        self._alone = functools.lru_cache(None)(lambda load, peak: self._run((load,), peak))
        self._outcomes = functools.lru_cache(None)(self._simulate)

    def outcome(self, kinds, policy):
        """Of a GPU with these programs."""
        return self._outcomes(tuple(sorted((kind.busy, kind.commands, kind.command_ns) for kind in kinds)))[policy]

    def _simulate(self, loads):
        """Services at the busiest hour of all of them, jobs over the day."""
        peak, day = self._run(loads, True), self._run(loads, False)
        outcomes = {}
        for policy in POLICIES:
            slowdowns, kept = [], []
            for number, load in enumerate(loads):
                if load[1]:
                    alone = self._alone(load, True)[TIME_SLICING][0]
                    slowdowns.append(_p99(peak[policy][number]) / _p99(alone))
                else:
                    alone = self._alone(load, False)[TIME_SLICING][0]["commands_per_second"]
                    kept.append(day[policy][number]["commands_per_second"] / alone)
            outcomes[policy] = Outcome(tuple(slowdowns), tuple(kept))
        return outcomes

    def _run(self, loads, peak):
        """By policy: the result of each program, in their order."""
        self.simulated += 1
        with tempfile.NamedTemporaryFile("w", suffix=".xrec") as file:
            file.write("\n".join(json.dumps(line) for line in self._lines(loads, peak)) + "\n")
            file.flush()
            command = [self._xsched, "simulate", "--json", "--policy", ",".join(POLICIES), "--warm-up", "1", "--seconds",
                       str(self._assumed.seconds), file.name]
            results = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return {result["policy"]: sorted(result["queues"], key=lambda queue: int(queue["queue"])) for result in results}

    def _lines(self, loads, peak):
        assumed = self._assumed
        yield {"xsched_record": 1}
        yield {"t": 0, "device": {"id": 0, "platform": "CUDA", "name": assumed.device, "level": 3}}
        for number, (busy, commands, command_ns) in enumerate(loads):
            yield {"t": 0, "process": {"id": number + 1, "name": str(number)}}
            yield {"t": 0, "queue": {"id": number + 1, "process": number + 1, "device": 0, "name": str(number),
                                     "hints": {"priority": self._priority(commands, command_ns)}}}
            if commands:
                at_hour = min(busy * assumed.peak, assumed.most_at_peak) if peak else busy
                load = {"commands": commands, "command_ns": command_ns, "period_ns": round(commands * command_ns / at_hour),
                        "arrivals": "poisson", "seed": number + 1}
            else:
                work = assumed.job_commands * command_ns
                load = {"commands": assumed.job_commands, "command_ns": command_ns, "pause_ns": round(work / busy - work)}
            yield {"t": 0, "load": {"queue": number + 1, **load}}

    def _priority(self, commands, command_ns):
        """The shorter a service's requests, the more urgent; jobs come last."""
        if not commands:
            return 0
        lengths = sorted({of * each for of, each in self._assumed.requests}, reverse=True)
        return 10 * (1 + lengths.index(commands * command_ns))
