#!/usr/bin/env python3
"""xsched calibrate measures a device with real programs, and xsched simulate takes its file."""
import json
import os
import pathlib
import signal
import subprocess

from harness import check, main, skip, test, wait_until

# A busy machine widens what is measured, but not beyond these, in nanoseconds.
PLAUSIBLE = {"command_latency_ns": (0, 100e6), "launch_ns": (10, 20e6), "slice_ns": (0, 1e9), "preempt_latency_ns": (1e3, 1e9)}


def calibrate(place, seconds, platform="OpenCL", **environment):
    path = pathlib.Path(place.folder) / "device.json"
    # Its temporary files are where the test can see them.
    environment = {**os.environ, "TMPDIR": place.folder, "POCL_DEVICES": "pthread", **environment}
    return path, subprocess.Popen([str(place.bin / "xsched"), "calibrate", "--platform", platform, "--seconds", str(seconds),
                                   "--output", str(path)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def measured(process, path):
    """The device's file, and the table that was printed."""
    output, errors = process.communicate(timeout=55)
    check(process.returncode == 0, f"it ends well: {errors}")
    return json.loads(path.read_text()), output


def skip_without_driver(place):
    done = subprocess.run([str(place.bin / "opencl_client"), "queues"], env={**os.environ, "POCL_DEVICES": "pthread"}, capture_output=True,
                          text=True, timeout=20, check=False)
    if done.returncode != 0:
        skip(f"the driver does not work here by itself: {done.stdout}")


def working_folders(place):
    return list(pathlib.Path(place.folder).glob("xsched-calibrate-*"))


def programs_of(folder):
    """The processes that were started with a path in this folder as an argument."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


@test
def a_measured_device_has_a_file_that_simulate_takes(place):
    skip_without_driver(place)
    path, process = calibrate(place, 0.5)
    device, output = measured(process, path)
    check((device["xsched_device"], device["platform"], device["level"]) == (1, "OpenCL", 1), f"it is described: {device}")
    for name in device["parameters"] | device["left_out"]:
        check(name in output, f"{name} is in the table")
    check(device["parameters"].keys() == device["measured"].keys(), "each parameter says how it was measured")
    check({"launch_ns", "slice_ns"} <= device["parameters"].keys(), f"native programs show these: {device}")
    for name, value in device["parameters"].items():
        low, high = PLAUSIBLE.get(name, (0, 1e9))
        check(low <= value <= high, f"{name} is plausible: {value}")
    check("gate_ns" in device["left_out"], "at level 1 these commands do not wait for a gate")
    simulated = place.tool("simulate", "--device", str(path), "--policy", "native,HPF", "--seconds", "2", "--json", "priority")
    check(simulated.returncode == 0, f"it is taken: {simulated.stderr}")
    check(len(json.loads(simulated.stdout)) == 2, "and both are predicted")
    check(working_folders(place) == [], "no file is left")


@test
def a_device_with_gates_shows_what_they_cost(place):
    driver = place.lib.parent / "standin"
    if not (driver / "libcuda.so.1").exists():
        skip("the stand-in for CUDA's driver is not built")
    path, process = calibrate(place, 0.5, platform="CUDA", LD_LIBRARY_PATH=str(driver))
    device, _ = measured(process, path)
    check((device["platform"], device["level"]) == ("CUDA", 2), f"it is described: {device}")
    check({"gate_ns", "launch_ns"} <= device["parameters"].keys(), f"gates are seen: {device}")
    # On a machine that is busy with other things, gates are too short for it.
    check("preempt_latency_ns" in device["parameters"] | device["left_out"], f"and so is the time between them: {device}")
    check("in_flight" in device["left_out"], "nothing bounds what is in flight")


@test
def one_that_is_interrupted_ends_all_that_it_started(place):
    skip_without_driver(place)
    path, process = calibrate(place, 20)
    wait_until(lambda: any(len(programs_of(folder)) > 1 for folder in working_folders(place)), "a server and a program run")
    folder, = working_folders(place)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    check(process.returncode == -signal.SIGINT, f"it ends by the signal: {process.returncode}")
    check(programs_of(folder) == [], "no program and no server is left")
    check(working_folders(place) == [] and not path.exists(), "and no file")


if __name__ == "__main__":
    main(__doc__)
