#!/usr/bin/env python3
"""Two continuous OpenCL programs that share the device 75 : 25, with kernels of 2 ms: what each gets, and what both get together as a share
of what one does alone. The measurements alternate.

  share.py --bin FOLDER [--policy UP] [--timeslice-us N] [--rounds N] [--seconds S]

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
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from keep_awake import awake_cores  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder with xsched, xserver and xsched-latency-task")
parser.add_argument("--policy", default="UP")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=6)
parser.add_argument("--timeslice-us", type=int)
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
               "--json", output]
    return output, subprocess.Popen(command, env=environment)


def rates(*prefixes, loops):
    """Kernels per second of each of these programs, which run at the same time."""
    started = [start(prefix, f"{index}.json", loops) for index, prefix in enumerate(prefixes)]
    for _, process in started:
        if process.wait() != 0:
            raise SystemExit("a measured program failed")
    results = [json.loads(pathlib.Path(output).read_text()) for output, _ in started]
    return [result["kernels"] / result["seconds"] for result in results]


def main():
    server = subprocess.Popen([program("xserver"), "--user", "--socket", environment["XSCHED_SOCKET"], "--policy", options.policy,
                               "--log-level", "warn", *(["--timeslice-us", str(options.timeslice_us)] if options.timeslice_us else [])],
                              env=environment)
    try:
        loops = subprocess.run([program("xsched-latency-task"), "--calibrate"], capture_output=True, text=True, check=True,
                               env=environment).stdout.strip()
        while not os.path.exists(environment["XSCHED_SOCKET"]) and server.poll() is None:
            time.sleep(0.01)
        rows = []
        for _ in range(options.rounds):
            alone, = rates([], loops=loops)
            native = rates([], [], loops=loops)
            ours = rates(*([program("xsched"), "run", "--no-server", "-u", str(percent), "--"] for percent in PERCENT), loops=loops)
            rows.append((alone, sum(native), *ours))
            print(f"alone {alone:.1f}, natively both {sum(native):.1f}, {options.policy} {ours[0]:.1f} and {ours[1]:.1f} kernels/s", flush=True)
        share = statistics.median(first / (first + second) for _, _, first, second in rows)
        print(f"the first has {100 * share:.1f} % (asked for: {PERCENT[0]}); both together : alone "
              f"{statistics.median((first + second) / alone for alone, _, first, second in rows):.3f}, natively "
              f"{statistics.median(native / alone for alone, native, _, _ in rows):.3f}")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    with awake_cores():
        main()
