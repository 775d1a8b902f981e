#!/usr/bin/env python3
"""What counting and reading metrics costs the server: runs server_bench in turns, and prints the ratio of each pair's figures.

  metrics_cost.py SERVER_BENCH [--rounds N] [--seconds N] [--transitions N] [--xserver PROGRAM] [--before PROGRAM]

--xserver: the server, if it is not that of the same build. Without --before: with the metrics read each second, against the same server
that nobody reads. With --before: this server, read each second, against another one (as of an older commit).

ratio: of two costs, the median over the rounds; 1.005 means half a percent more.
"""
import argparse
import json
import statistics
import subprocess

from keep_awake import awake_cores

# Each is a cost: less is better.
FIGURES = {
    "processor time per state change": lambda figures: 1 / figures["throughput"]["changes_handled_per_cpu_s"],
    "ready to another's closed gate, p50": lambda figures: figures["latency"]["ready_to_hold_us"]["p50"],
}


def measure(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--transitions", type=int, default=20_000)
    parser.add_argument("--xserver")
    parser.add_argument("--before")
    options = parser.parse_args()
    plain = [options.bench, "--json", "--seconds", str(options.seconds), "--transitions", str(options.transitions)]
    this = ["--xserver", options.xserver] if options.xserver else []
    sides = {"without": plain + (["--xserver", options.before] if options.before else this), "with": plain + this + ["--scrape"]}
    ratios = {name: [] for name in FIGURES}
    with awake_cores():
        for number in range(options.rounds):
            order = list(sides) if number % 2 == 0 else list(reversed(sides))
            figures = {side: measure(sides[side]) for side in order}
            for name, cost in FIGURES.items():
                ratios[name].append(cost(figures["with"]) / cost(figures["without"]))
    print(f"server's processor time per reading: {figures['with']['throughput']['scrape']['server_cpu_us']:.0f} µs")
    for name, values in ratios.items():
        print(f"{name}: ratio {statistics.median(values):.4f} (of {len(values)}: {min(values):.3f} to {max(values):.3f})")


if __name__ == "__main__":
    main()
