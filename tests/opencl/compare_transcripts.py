#!/usr/bin/env python3
"""A program sees the same under XSched as natively, by every route.

  compare_transcripts.py PROGRAM SHIM XSERVER ROUTE      ROUTE: layer, preload, both, layer-contended, preload-dlopen
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

program, shim, xserver, route = sys.argv[1:]


def environment(extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith("XSCHED_") and k not in ("OPENCL_LAYERS", "LD_PRELOAD")}
    env.update(extra)
    return env


def run(extra, *arguments):
    # PoCL 3.1 sometimes crashes in this program, also without XSched (about once in 30 runs on two busy cores). Such a run is repeated. Any
    # other result counts.
    for _ in range(6):
        done = subprocess.run([program, *arguments], env=environment(extra), capture_output=True, text=True, timeout=120)
        if done.returncode not in (-signal.SIGSEGV, -signal.SIGABRT):
            break
    if done.returncode != 0:
        sys.exit(f"the program ended with {done.returncode} under {extra}: {done.stderr}")
    if "xsched:" in done.stderr:
        sys.exit(f"XSched complained: {done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    socket = os.path.join(folder, "s")
    arguments = ["--dlopen"] if "dlopen" in route else []
    native = run({}, *arguments)
    server = subprocess.Popen([xserver, "--socket", socket, "--log-level", "error"])
    while not os.path.exists(socket):
        time.sleep(0.01)
    under = {"XSCHED_SOCKET": socket, "XSCHED_SCHEDULER": "GLB", "XSCHED_AUTO_XQUEUE": "ON",
             "XSCHED_AUTO_XQUEUE_PRIORITY": "0"}
    if route.startswith(("layer", "both")):
        under["OPENCL_LAYERS"] = shim
    if route.startswith(("preload", "both")):
        under["LD_PRELOAD"] = shim
    rival = None
    try:
        if "contended" in route:
            # A more urgent process on the same device, so that the program's queues are gated, and sometimes held.
            rival = subprocess.Popen([program], env=environment({**under, "XSCHED_AUTO_XQUEUE_PRIORITY": "9"}),
                                     stdout=subprocess.DEVNULL)
        scheduled = run(under, *arguments)
    finally:
        if rival:
            rival.wait()
        server.terminate()
        server.wait()
    if native != scheduled:
        for line, (a, b) in enumerate(zip(native.splitlines(), scheduled.splitlines()), 1):
            if a != b:
                print(f"line {line}: native «{a}», under XSched «{b}»")
        sys.exit("the transcripts differ")
    print(f"{len(native.splitlines())} lines, the same natively and by route {route}")
