#!/usr/bin/env python3
"""How many GPUs a site needs for the same programs, and at which p99 of its services:

  a  each program has a whole GPU
  b  the driver's time slices divide a GPU
  c  XSched does: services by priority, and jobs in the time that they leave

  savings.py XSCHED [--nodes N] [--seconds S] [--seed N] [--svg FILE] [--json FILE] [--no-sensitivity]

A site places programs only where all services of the GPU keep their p99 within a target, and all jobs their speed. What happens on a
GPU says `xsched simulate`; assumptions.py says what is assumed. The same seed has the same result.
"""
import argparse
import dataclasses
import json
import sys

import placement
import plot
import programs
from assumptions import SENSITIVITY, Assumptions
from shared_gpu import TIME_SLICING, XSCHED, SharedGpu

NAMES = {TIME_SLICING: "time slices of the driver", XSCHED: "XSched"}
# At which target the sensitivity is shown.
SHOWN_TARGET = 1.5


class Site:
    """The programs of a site, and what its GPUs do with them."""

    def __init__(self, assumed, gpu):
        self.assumed = assumed
        self._gpu = gpu
        self.programs = programs.draw(assumed)
        self.shareable = sum(self.programs.values())
        self.gpus = assumed.nodes * assumed.gpus_per_node

    def needed(self, mixes):
        return self.gpus - self.shareable + sum(mixes.values())

    def place(self, policy, target):
        """With services within `target` times their p99 alone."""
        def is_fine(mix):
            # What needs more than there is needs no simulation.
            if sum(kind.busy for kind in mix) > 1 or sum(kind.load(self.assumed) for kind in mix if kind.is_service) > 1:
                return False
            return self._gpu.outcome(mix, policy).is_fine(target, self.assumed.job_slowdown)
        return placement.place(self.programs, self.assumed, is_fine)

    def place_unseen(self):
        """As a device plugin that counts replicas does, and knows nothing of latencies."""
        return placement.place(self.programs, dataclasses.replace(self.assumed, most_on_gpu=self.assumed.replicas), lambda mix: True)

    def slowdowns(self, mixes, policy):
        """p99 : p99 alone of all services, sorted."""
        ratios = []
        for mix, count in mixes.items():
            ratios += self._gpu.outcome(mix, policy).slowdowns * count if len(mix) > 1 else [1.0] * (count * mix[0].is_service)
        return sorted(ratios)


def at(values, quantile):
    return values[min(len(values) - 1, int(quantile * len(values)))] if values else None


def by_target(site):
    rows = []
    for target in site.assumed.targets:
        row = {"target": target, "whole": site.needed(placement.whole(site.programs))}
        for policy in NAMES:
            row[policy] = site.needed(site.place(policy, target))
        rows.append(row)
    return rows


def unseen(site):
    """The same placement under both."""
    mixes = site.place_unseen()
    result = {"gpus": site.needed(mixes)}
    for policy in NAMES:
        ratios = site.slowdowns(mixes, policy)
        result[policy] = {"p50": at(ratios, 0.5), "p90": at(ratios, 0.9), "p99": at(ratios, 0.99)}
    return result


def sensitivity(assumed, gpu):
    rows = []
    for name, changes in SENSITIVITY:
        site = Site(dataclasses.replace(assumed, **changes), gpu)
        rows.append({"what": name, **{policy: site.needed(site.place(policy, SHOWN_TARGET)) for policy in NAMES}, "whole": site.gpus})
    return rows


def print_targets(rows):
    print(f"{'p99 : alone, at most':<24} {'whole GPUs':>12} {'time slices':>12} {'XSched':>12} {'XSched saves':>14}")
    for row in rows:
        saved = 1 - row[XSCHED] / row["whole"]
        print(f"{row['target']:<24} {row['whole']:>12} {row[TIME_SLICING]:>12} {row[XSCHED]:>12} {saved:>13.0%}")


def print_unseen(assumed, result):
    print(f"\n{assumed.replicas} programs on a GPU if their memory fits, whatever their latency: {result['gpus']} GPUs; p99 : alone of the services")
    for policy, name in NAMES.items():
        print(f"  {name:<26} median {result[policy]['p50']:.2f}, the slowest tenth {result[policy]['p90']:.1f} or more, "
              f"the slowest hundredth {result[policy]['p99']:.1f} or more")


def print_sensitivity(rows):
    print(f"\n{f'p99 at most {SHOWN_TARGET} × alone':<34} {'time slices':>12} {'XSched':>12}  of whole GPUs")
    for row in rows:
        print(f"{row['what']:<34} {row[TIME_SLICING] / row['whole']:>12.0%} {row[XSCHED] / row['whole']:>12.0%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("xsched")
    parser.add_argument("--nodes", type=int, default=Assumptions.nodes)
    parser.add_argument("--seconds", type=float, default=Assumptions.seconds, help="simulated for each mix of programs")
    parser.add_argument("--seed", type=int, default=Assumptions.seed)
    parser.add_argument("--svg", help="write the plot to this file")
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--no-sensitivity", action="store_true")
    options = parser.parse_args()
    assumed = Assumptions(nodes=options.nodes, seconds=options.seconds, seed=options.seed)
    gpu = SharedGpu(options.xsched, assumed)
    site = Site(assumed, gpu)
    result = {"assumptions": dataclasses.asdict(assumed), "targets": by_target(site), "unseen": unseen(site)}
    print_targets(result["targets"])
    print_unseen(assumed, result["unseen"])
    if not options.no_sensitivity:
        result["sensitivity"] = sensitivity(assumed, gpu)
        print_sensitivity(result["sensitivity"])
    print(f"\n{gpu.simulated} simulations of one GPU", file=sys.stderr)
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(plot.savings(result["targets"], {**NAMES, "whole": "whole GPUs"}))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
