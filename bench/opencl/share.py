#!/usr/bin/env python3
"""Two continuous OpenCL programs that share the device 75 : 25, with kernels of 2 ms: what each gets, and what both get together as a share
of what one does alone. The measurements alternate.

  share.py --bin FOLDER [--policy UP] [--timeslice-us N] [--rounds N] [--seconds S] [--gaps] [--in-turns 4 1] [--keep-awake]

With --gaps the programs note when the device began and ended each kernel. More figures follow: for how much of the time it had no kernel,
and how long such a gap is (median); and for how much of the time it had kernels of both programs.

With --in-turns, the programs also take turns without XSched: so many kernels of the first one, then so many of the second one. The next
one begins when the last kernel has ended.

With --keep-awake no core sleeps for long while this runs (bench/keep_awake.py).
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from keep_awake import awake_cores  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder with xsched, xserver and xsched-latency-task")
parser.add_argument("--policy", default="UP")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=6)
parser.add_argument("--timeslice-us", type=int)
parser.add_argument("--gaps", action="store_true", help="also measure for how long the device has no kernel")
parser.add_argument("--in-turns", type=int, nargs=2, metavar=("FIRST", "SECOND"), help="also measure the programs natively in turns")
parser.add_argument("--keep-awake", action="store_true", help="no core sleeps for long meanwhile")
options = parser.parse_args()

PERCENT = (75, 25)
folder = tempfile.TemporaryDirectory()
environment = {name: value for name, value in os.environ.items() if not name.startswith("XSCHED_AUTO") and name != "LD_PRELOAD"}
environment["XSCHED_SOCKET"] = os.path.join(folder.name, "socket")


def program(name):
    return str(options.bin / name)


def start(prefix, name, loops):
    output = os.path.join(folder.name, name)
    command = [*prefix, program("xsched-latency-task"), "--continuous", "--kernel-ms", "2", "--loops-per-ms", loops, "--seconds", str(options.seconds),
               "--json", output, *(["--times"] if options.gaps else [])]
    return output, subprocess.Popen(command, env=environment)


def idle(results):
    """For what part of the time in which all of these programs ran the device had no kernel, the median length of such a gap in µs, and for
    what part it had kernels of several programs."""
    begin = max(result["times_ns"][0][0] for result in results)
    end = min(result["times_ns"][-1][1] for result in results)
    kernels = sorted(times for result in results for times in result["times_ns"] if begin <= times[0] and times[1] <= end)
    gaps, together, busy_until = [], 0, begin
    for start_ns, end_ns in kernels:
        if start_ns > busy_until:
            gaps.append(start_ns - busy_until)
        together += max(0, min(busy_until, end_ns) - start_ns)
        busy_until = max(busy_until, end_ns)
    return sum(gaps) / (end - begin), statistics.median(gaps or [0]) / 1000, together / (end - begin)


def results_of(started):
    for _, process in started:
        if process.wait() != 0:
            raise SystemExit("a measured program failed")
    return [json.loads(pathlib.Path(output).read_text()) for output, _ in started]


def measure(*prefixes, loops):
    """Kernels per second of each of these programs, which run at the same time, and what idle() says of them (None without --gaps)."""
    results = results_of([start(prefix, f"{index}.json", loops) for index, prefix in enumerate(prefixes)])
    return [result["kernels"] / result["seconds"] for result in results], idle(results) if options.gaps else None


def in_turns(loops):
    """Kernels per second of two programs together that take turns without XSched."""
    pipes = [os.pipe() for _ in options.in_turns]
    started = []
    for index, kernels in enumerate(options.in_turns):
        output = os.path.join(folder.name, f"{index}.json")
        turns = (pipes[index][0], pipes[1 - index][1])
        command = [program("xsched-latency-task"), "--count", str(kernels), "--turns", *map(str, turns), "--kernel-ms", "2", "--loops-per-ms", loops,
                   "--seconds", str(options.seconds), "--json", output]
        started.append((output, subprocess.Popen(command, env=environment, pass_fds=turns)))
    os.write(pipes[0][1], b".")
    for end in (end for pipe in pipes for end in pipe):
        os.close(end)
    return sum(result["kernels"] / result["seconds"] for result in results_of(started))


def main():
    server = subprocess.Popen([program("xserver"), "--user", "--socket", environment["XSCHED_SOCKET"], "--policy", options.policy,
                               "--log-level", "warn", *(["--timeslice-us", str(options.timeslice_us)] if options.timeslice_us else [])],
                              env=environment)
    try:
        loops = subprocess.run([program("xsched-latency-task"), "--calibrate"], capture_output=True, text=True, check=True,
                               env=environment).stdout.strip()
        while not os.path.exists(environment["XSCHED_SOCKET"]) and server.poll() is None:
            time.sleep(0.01)
        rows, gaps, turns = [], [], []
        for _ in range(options.rounds):
            (alone,), alone_idle = measure([], loops=loops)
            native, _ = measure([], [], loops=loops)
            ours, ours_idle = measure(*([program("xsched"), "run", "--no-server", "-u", str(percent), "--"] for percent in PERCENT), loops=loops)
            rows.append((alone, sum(native), *ours))
            print(f"alone {alone:.1f}, natively both {sum(native):.1f}, {options.policy} {ours[0]:.1f} and {ours[1]:.1f} kernels/s", flush=True)
            if options.in_turns:
                turns.append(in_turns(loops) / alone)
            if options.gaps:
                gaps.append((*alone_idle, *ours_idle))
        share = statistics.median(first / (first + second) for _, _, first, second in rows)
        print(f"the first has {100 * share:.1f} % (asked for: {PERCENT[0]}); both together : alone "
              f"{statistics.median((first + second) / alone for alone, _, first, second in rows):.3f}, natively "
              f"{statistics.median(native / alone for alone, native, _, _ in rows):.3f}")
        if options.in_turns:
            print(f"natively in turns : alone {statistics.median(turns):.3f}")
        if options.gaps:
            figures = [statistics.median(values) for values in zip(*gaps)]
            print(f"the device has no kernel: alone {100 * figures[0]:.1f} % of the time (gaps of {figures[1]:.0f} µs), "
                  f"{options.policy} {100 * figures[3]:.1f} % (gaps of {figures[4]:.0f} µs); {options.policy} has kernels of both at a time for "
                  f"{100 * figures[5]:.1f} %")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    with awake_cores() if options.keep_awake else contextlib.nullcontext():
        main()
