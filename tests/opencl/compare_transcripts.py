#!/usr/bin/env python3
"""A program sees the same under XSched as natively, by every route.

  compare_transcripts.py PROGRAM SHIM XSERVER ROUTE [EMULATOR...]
      ROUTE: layer, preload, both, layer-contended, preload-dlopen
      EMULATOR: a command that runs all programs. It is qemu's, whose option -E sets a variable for the program alone.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

program, shim, xserver, route, *emulator = sys.argv[1:]


def call(command, extra):
    """How subprocess starts a command with these variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("XSCHED_") and k not in ("OPENCL_LAYERS", "LD_PRELOAD")}
    if not emulator:
        return {"args": command, "env": {**env, **extra}}
    # The emulator itself cannot load the shim.
    options = [word for name, value in extra.items() for word in ("-E", f"{name}={value}")]
    return {"args": [*emulator, *options, *command], "env": env}


def run(extra, *arguments):
    # PoCL 3.1 sometimes crashes in this program, also without XSched (about once in 30 runs on two busy cores). Such a run is repeated. Any
    # other result counts.
    for _ in range(6):
        done = subprocess.run(**call([program, *arguments], extra), capture_output=True, text=True, timeout=120)
        if done.returncode not in (-signal.SIGSEGV, -signal.SIGABRT):
            break
    if done.returncode != 0:
        sys.exit(f"the program ended with {done.returncode} under {extra}: {done.stderr}")
    return done


def transcript(extra, *arguments):
    done = run(extra, *arguments)
    if "xsched:" in done.stderr:
        sys.exit(f"XSched complained: {done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    socket = os.path.join(folder, "s")
    arguments = ["--dlopen"] if "dlopen" in route else []
    native = transcript({}, *arguments)
    under = {"XSCHED_SOCKET": socket, "XSCHED_SCHEDULER": "GLB", "XSCHED_AUTO_XQUEUE": "ON",
             "XSCHED_AUTO_XQUEUE_PRIORITY": "0"}
    if route.startswith(("layer", "both")):
        under["OPENCL_LAYERS"] = shim
    if route.startswith(("preload", "both")):
        under["LD_PRELOAD"] = shim
    # Otherwise the transcripts would be equal because XSched is in neither.
    unserved = run(under, *arguments)
    if "xsched: no XSched server" not in unserved.stderr:
        sys.exit(f"XSched does not say that there is no server: it is not in the program. {unserved.stderr}")
    server = subprocess.Popen(**call([xserver, "--socket", socket, "--log-level", "error"], {}))
    while not os.path.exists(socket):
        time.sleep(0.01)
    rival = None
    try:
        if "contended" in route:
            # A more urgent process on the same device, so that the program's queues are gated, and sometimes held.
            rival = subprocess.Popen(**call([program], {**under, "XSCHED_AUTO_XQUEUE_PRIORITY": "9"}), stdout=subprocess.DEVNULL)
        scheduled = transcript(under, *arguments)
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
