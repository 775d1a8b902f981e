#!/usr/bin/env python3
"""Checks that gpu_task and the benchmarks' commands work, over the stand-in driver. Their speed is not checked.

smoke_test.py --task PROGRAM --driver FOLDER --shim LIBRARY --resource-manager LIBRARY
"""
import argparse
import json
import os
import subprocess
import unittest

# A kernel's loop takes the stand-in 10 ns.
USE = {"do": "use", "base_us": 0, "loops_per_us": 100}
TASK = {"kernel_us": 200, "kernels": 5, "rate_hz": 50, "seconds": 0.3}

options = None


def answers(*commands, **environment):
    """The answers of gpu_task: natively, or under XSched if the environment names a scheduler."""
    environment["LD_LIBRARY_PATH"] = options.driver
    if "XSCHED_SCHEDULER" in environment:
        # The resource manager is behind the shim, so it gets the shim's requests as well.
        environment |= {"LD_PRELOAD": f"{options.shim}:{options.resource_manager}", "STANDIN_CUDA_CONTROL": "/dev/null",
                        "XSCHED_AUTO_XQUEUE": "ON"}
    done = subprocess.run([options.task, *map(json.dumps, commands)], env={**os.environ, **environment}, capture_output=True,
                          text=True, timeout=60)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [line["error"] for line in lines if "error" in line]
    if errors or done.returncode != 0 or done.stderr:
        raise AssertionError(f"{done.returncode}: {errors} {done.stderr}")
    return [line["ok"] for line in lines]


class GpuTask(unittest.TestCase):
    def test_a_calibrated_kernel_takes_longer_the_longer_it_is_asked_to(self):
        calibration, = answers({"do": "calibrate"})
        _, short, long = answers({"do": "use", **calibration}, *({"do": "count", "kernel_us": us, "kernels": 20} for us in (500, 8000)))
        self.assertGreater(long["seconds"], 2 * short["seconds"])

    def test_a_task_and_a_continuous_program_report_what_they_did(self):
        used, task, continuous = answers(USE, {"do": "task", "watch_start": True, **TASK},
                                         {"do": "continuous", "kernel_us": 200, "seconds": 0.2})
        self.assertFalse(used["under_xsched"])
        self.assertGreaterEqual(min(task["latency_ms"]), 1)
        self.assertEqual(len(task["latency_ms"]), len(task["start_us"]))
        self.assertGreater(continuous["progress"][-1][1], 0)

    def test_two_streams_of_one_process_are_scheduled(self):
        used, both = answers(USE, {"do": "two_streams", "low_kernel_us": 200, "lead_seconds": 0.1, **TASK}, XSCHED_SCHEDULER="LCL")
        self.assertTrue(used["under_xsched"])
        self.assertGreater(len(both["task"]["latency_ms"]), 0)
        self.assertGreater(both["continuous"]["progress"][-1][1], 0)

    def test_allocations_are_timed(self):
        for source in ("pool", "driver"):
            with self.subTest(source=source):
                _, times = answers(USE, {"do": "allocate", "from": source, "bytes": 512, "count": 200})
                self.assertGreater(min(times["ns"]), 0)

    def test_the_machine_wakes_threads(self):
        _, wakes = answers(USE, {"do": "wakes", "rate_hz": 200, "seconds": 0.2})
        # How many depends on the machine: a wake that is due before the one before has ended is left out.
        self.assertGreater(len(wakes["thread_us"]), 0)
        self.assertEqual(len(wakes["timer_us"]), len(wakes["thread_us"]))
        self.assertGreater(min(wakes["timer_us"] + wakes["thread_us"]), 0)

    def test_a_suspended_program_stops_and_goes_on_at_each_level(self):
        for level in (1, 2, 3):
            with self.subTest(level=level):
                _, suspend = answers(USE, {"do": "suspend", "kernel_us": 200, "tries": 5, "level": level}, XSCHED_SCHEDULER="APP")
                self.assertEqual((suspend["never_stopped"], suspend["never_resumed"]), (0, 0))
                self.assertEqual(len(suspend["resumed_us"]), 5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("task", "driver", "shim", "resource-manager"):
        parser.add_argument(f"--{name}", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=["smoke_test.py", *rest])
