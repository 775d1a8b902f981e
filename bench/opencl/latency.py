#!/usr/bin/env python3
"""The OpenCL figures, each beside native in the same run:

  latency.py --bin FOLDER [--rounds N] [--seconds S] [--json FILE]

  1. An urgent task (kernels of 2 ms) beside a continuous program with the same kernels, each in a process of its own: latency
     alone, together natively, together under XSched; what the other program keeps of the time that the first leaves.
  2. 10,000 kernels of 100 µs: time under XSched (no competitor) over native time, in alternating parts.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder with xsched and xsched-latency-task")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=8)
parser.add_argument("--json")
options = parser.parse_args()

folder = tempfile.TemporaryDirectory()
XSCHED, TASK = str(options.bin / "xsched"), str(options.bin / "xsched-latency-task")
for name in list(os.environ):
    if name.startswith("XSCHED_AUTO") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
        del os.environ[name]
LOOPS = max((subprocess.run([TASK, "--calibrate"], capture_output=True, text=True, check=True).stdout.strip()
             for _ in range(5)), key=float)
# Ten kernels of 2 ms, ten times a second.
URGENT = ["--kernels", "10", "--rate", "10", "--kernel-ms", "2", "--loops-per-ms", LOOPS]
BUSY = ["--continuous", "--kernel-ms", "2", "--loops-per-ms", LOOPS]


def start(prefix, arguments, seconds, name):
    output = os.path.join(folder.name, name)
    return output, subprocess.Popen([*prefix, TASK, *arguments, "--seconds", str(seconds), "--json", output])


def finish(started):
    output, process = started
    if process.wait() != 0:
        raise SystemExit("a measured program failed")
    return json.loads(pathlib.Path(output).read_text())


def percentile(values, fraction):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * fraction))]


def together(urgent_prefix, busy_prefix):
    busy = start(busy_prefix, BUSY, options.seconds + 1, "busy.json")
    urgent = finish(start(urgent_prefix, URGENT, options.seconds, "urgent.json"))
    result = finish(busy)
    return urgent["latency_ms"], result["kernels"] / result["seconds"]


alone, native, scheduled, rates = [], [], [], []
for _ in range(options.rounds):
    alone += finish(start([], URGENT, options.seconds, "alone.json"))["latency_ms"]
    busy_alone = finish(start([], BUSY, options.seconds, "busy.json"))
    latencies, _rate = together([], [])
    native += latencies
    latencies, rate = together([XSCHED, "run", "-p", "9", "--"], [XSCHED, "run", "-p", "0", "--"])
    scheduled += latencies
    # The urgent task's share of the device, by its latency alone.
    taken = statistics.median(alone) / 1000 * 10 * options.seconds / (options.seconds + 1)
    rates.append(rate / (busy_alone["kernels"] / busy_alone["seconds"]) / (1 - taken))

rows = {name: {"p50_ms": percentile(values, 0.5), "p99_ms": percentile(values, 0.99), "max_ms": max(values)}
        for name, values in (("alone", alone), ("native", native), ("xsched", scheduled))}
print(f"{'urgent task':<12} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'p99/alone':>10} {'p50/alone':>10}")
for name, row in rows.items():
    print(f"{name:<12} {row['p50_ms']:>8.2f} {row['p99_ms']:>8.2f} {row['max_ms']:>8.2f} "
          f"{row['p99_ms'] / rows['alone']['p99_ms']:>10.2f} {row['p50_ms'] / rows['alone']['p50_ms']:>10.2f}")
kept = statistics.median(rates)
print(f"the other program keeps {kept:.1%} of what the urgent task leaves")

ratios = []
for _ in range(options.rounds):
    parts = []
    for prefix in ([], [XSCHED, "run", "--"]):
        result = finish(start(prefix, ["--count", "10000", "--kernel-ms", "0.1", "--loops-per-ms", LOOPS], 1, "count.json"))
        parts.append(result["seconds"])
    ratios.append(parts[1] / parts[0])
ratio = statistics.median(ratios)
print(f"10,000 kernels of 100 µs: ×{ratio:.4f} of native (median of {options.rounds} pairs)")
if options.json:
    pathlib.Path(options.json).write_text(json.dumps({"latency": rows, "kept": kept, "ratio_10000": ratio}, indent=2) + "\n")
