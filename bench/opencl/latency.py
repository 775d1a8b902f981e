#!/usr/bin/env python3
"""The OpenCL figures. Each has its native counterpart from the same run.

  latency.py --bin FOLDER [--rounds N] [--seconds S] [--json FILE] [--html PAGE]

  1. An urgent task (kernels of 2 ms) beside a continuous program with the same kernels, in two processes. Latency alone, together
     natively, and together under XSched. The other program's throughput, as a share of the time that the task leaves free.
  2. 10,000 kernels of 100 µs: time under XSched (no competitor) divided by native time, in alternating parts.

No core sleeps while this runs (bench/keep_awake.py says why).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "plan")]
import distributions  # noqa: E402
import page  # noqa: E402
from keep_awake import awake_cores  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder with xsched and xsched-latency-task")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=8)
parser.add_argument("--json")
parser.add_argument("--html", type=pathlib.Path, help="a page with the figures, and how often each latency occurred")
options = parser.parse_args()

folder = tempfile.TemporaryDirectory()
XSCHED, TASK = str(options.bin / "xsched"), str(options.bin / "xsched-latency-task")
RATE = 10  # urgent tasks per second, each of ten kernels of 2 ms
for name in list(os.environ):
    if name.startswith("XSCHED_AUTO") or name in ("OPENCL_LAYERS", "LD_PRELOAD"):
        del os.environ[name]


def calibrate():
    """Loops of a kernel per millisecond, at the device's highest speed."""
    tries = (subprocess.run([TASK, "--calibrate"], capture_output=True, text=True, check=True).stdout.strip() for _ in range(5))
    return max(tries, key=float)


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


def together(urgent, busy, urgent_prefix, busy_prefix):
    other = start(busy_prefix, busy, options.seconds + 1, "busy.json")
    latencies = finish(start(urgent_prefix, urgent, options.seconds, "urgent.json"))["latency_ms"]
    result = finish(other)
    return latencies, result["kernels"] / result["seconds"]


def measure_latencies(urgent, busy):
    """Latencies of the urgent task alone, natively beside the busy program, and under XSched; and the busy program's throughput."""
    alone, native, scheduled, rates = [], [], [], []
    for _ in range(options.rounds):
        alone += finish(start([], urgent, options.seconds, "alone.json"))["latency_ms"]
        busy_alone = finish(start([], busy, options.seconds, "busy.json"))
        native += together(urgent, busy, [], [])[0]
        latencies, rate = together(urgent, busy, [XSCHED, "run", "-p", "9", "--"], [XSCHED, "run", "-p", "0", "--"])
        scheduled += latencies
        # The urgent task's share of the device, computed from its latency when it runs alone.
        taken = statistics.median(alone) / 1000 * RATE * options.seconds / (options.seconds + 1)
        rates.append(rate / (busy_alone["kernels"] / busy_alone["seconds"]) / (1 - taken))
    return {"alone": alone, "native": native, "xsched": scheduled}, statistics.median(rates)


def row_of(latencies):
    return {"p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99), "max_ms": max(latencies)}


def html_page(latencies, rows, kept, ratio):
    cells = [((name, *(f"{row[key]:.2f}" for key in ("p50_ms", "p99_ms", "max_ms"))), "") for name, row in rows.items()]
    return page.document("XSched: latencies of an urgent OpenCL program", "\n".join((
        "<p>An urgent task of ten kernels of 2 ms, ten times a second, alone and beside a program that always has work.</p>",
        page.table("Latency of the urgent task", ("urgent task", "p50, ms", "p99, ms", "longest, ms"), cells),
        f"<p>The other program keeps {kept:.1%} of what the urgent task leaves. 10,000 kernels of 100 µs take {ratio:.4f} × the native time.</p>",
        distributions.figure("How often each latency occurred", "ms", latencies, percentile))))


def measure_overhead(loops):
    """Time of 10,000 kernels under XSched, divided by native time."""
    ratios = []
    for _ in range(options.rounds):
        native, scheduled = (
            finish(start(prefix, ["--count", "10000", "--kernel-ms", "0.1", "--loops-per-ms", loops], 1, "count.json"))["seconds"]
            for prefix in ([], [XSCHED, "run", "--"]))
        ratios.append(scheduled / native)
    return statistics.median(ratios)


with awake_cores():
    loops = calibrate()
    urgent = ["--kernels", "10", "--rate", str(RATE), "--kernel-ms", "2", "--loops-per-ms", loops]
    busy = ["--continuous", "--kernel-ms", "2", "--loops-per-ms", loops]
    latencies, kept = measure_latencies(urgent, busy)
    rows = {name: row_of(values) for name, values in latencies.items()}
    print(f"{'urgent task':<12} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'p99/alone':>10} {'p50/alone':>10}")
    for name, row in rows.items():
        print(f"{name:<12} {row['p50_ms']:>8.2f} {row['p99_ms']:>8.2f} {row['max_ms']:>8.2f} "
              f"{row['p99_ms'] / rows['alone']['p99_ms']:>10.2f} {row['p50_ms'] / rows['alone']['p50_ms']:>10.2f}")
    print(f"the other program keeps {kept:.1%} of what the urgent task leaves", flush=True)
    ratio = measure_overhead(loops)
    print(f"10,000 kernels of 100 µs: ×{ratio:.4f} of native (median of {options.rounds} pairs)")
if options.json:
    pathlib.Path(options.json).write_text(json.dumps({"latency": rows, "kept": kept, "ratio_10000": ratio}, indent=2) + "\n")
if options.html:
    options.html.write_text(html_page(latencies, rows, kept, ratio), encoding="utf-8")
