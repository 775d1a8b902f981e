#!/usr/bin/env python3
"""Checks the models of the protocol (model/, docs/model.md) with SPIN, exhaustively.

There are two kinds of check for each model: `states` (if nothing more can happen, everything is done) and `cycles` (no execution goes
on forever). Mutations are models with one step left out. The check must find an error in each: this shows that the checks can fail.
The last line counts the checks.

  model.py [-j JOBS] [--only TEXT] [--keep FOLDER]
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MODELS = pathlib.Path(__file__).resolve().parent.parent / "model"
MEMORY_MIB = 4000
SECONDS = 600

SMALL = "-DSMALL"
# model, kind of check, options
CHECKS = [
    ("wakeup", "states", ""),
    ("wakeup", "cycles", ""),
    ("wakeup", "states", "-DQUERIES -DCOMMANDS=2"),
    ("wakeup", "cycles", "-DQUERIES -DCOMMANDS=2"),
    ("gates", "states", ""),
    ("gates", "states", f"{SMALL} -DDEATHS=1 -DRESTARTS=1"),
    ("gates", "states", f"{SMALL} -DHANGS=1 -DRESUMES=1 -DDEATHS=1"),
    ("gates", "states", f"{SMALL} -DKILLS=1"),
    ("gates", "states", f"{SMALL} -DSTOPS=1 -DCONTS=1"),
    ("gates", "states", f"{SMALL} -DALARMS=1"),
    ("gates", "states", f"{SMALL} -DLEAVES=1"),
    ("gates", "cycles", SMALL),
    ("gates", "cycles", f"{SMALL} -DALARMS=1"),
    ("gates", "cycles", f"{SMALL} -DDEATHS=1 -DRESTARTS=1"),
    ("driver", "states", ""),
    ("driver", "states", "-DHOST_GATES -DRIVALS=0"),
    ("driver", "cycles", "-DRIVALS=0"),
    ("driver", "cycles", "-DHOST_GATES -DRIVALS=0 -DQUERIES=0"),
    ("turns", "states", ""),
    ("turns", "states", "-DCLASSES=3"),
    ("turns", "states", "-DHIDDEN"),
    ("turns", "states", "-DHIDDEN -DCLASSES=3"),
    ("turns", "states", "-DFAILURES=1"),
    ("turns", "states", "-DDEATH -DFAILURES=1"),
    ("turns", "cycles", ""),
    ("turns", "cycles", "-DHIDDEN"),
]
# model, kind of check that must fail, what is left out, options
MUTATIONS = [
    ("wakeup", "states", "NO_RING_AT_BEGIN", ""),
    ("wakeup", "states", "QUIET_IN_SPITE_OF_PROGRESS", ""),
    ("wakeup", "states", "NO_RING_AT_END", ""),
    ("wakeup", "states", "SILENT_REPORT", ""),
    ("wakeup", "states", "RING_IS_UNORDERED", ""),
    ("wakeup", "states", "COUNTER_IS_NO_BARRIER", ""),
    ("wakeup", "states", "NO_FENCE", ""),
    ("wakeup", "states", "NO_RECHECK", ""),
    ("wakeup", "states", "READ_BEFORE_CLEAR", ""),
    ("wakeup", "cycles", "QUERY_UNANSWERED", "-DQUERIES -DCOMMANDS=2"),
    ("gates", "states", "NO_RECHECK_AFTER_GATE", SMALL),
    ("gates", "states", "AGENT_SILENCES_LATE", SMALL),
    ("gates", "states", "NO_WAKE_AT_OPENING", SMALL),
    ("gates", "states", "NO_HEARTBEAT", f"{SMALL} -DHANGS=1"),
    ("gates", "states", "GATE_BEFORE_WAKE", f"{SMALL} -DHANGS=1"),
    ("gates", "states", "OPEN_NOT_SET", f"{SMALL} -DLEAVES=1"),
    ("gates", "states", "OLD_CONNECTION_KEPT", f"{SMALL} -DALARMS=1"),
    ("gates", "states", "DEATH_UNNOTICED", f"{SMALL} -DDEATHS=1"),
    ("gates", "states", "CLIENT_DEATH_UNNOTICED", f"{SMALL} -DKILLS=1"),
    ("gates", "states", "STOPPED_STILL_CLAIMS", f"{SMALL} -DSTOPS=1"),
    ("driver", "states", "AGENT_CALLS_DRIVER", ""),
    ("driver", "states", "NO_BARRIER", ""),
    ("driver", "states", "OPEN_DECIDED_UNLOCKED", ""),
    ("driver", "states", "LOCK_HELD_IN_DRIVER", "-DHOST_GATES -DRIVALS=0"),
    ("driver", "states", "NO_RETRY_OF_LOCK", "-DHOST_GATES -DRIVALS=0"),
    ("turns", "cycles", "NO_TURNS", ""),
    ("turns", "states", "OFF_IS_STALLED", ""),
    ("turns", "states", "SLICE_NOT_RESENT", ""),
    ("turns", "states", "FAILURE_TAKEN_FOR_SUCCESS", "-DFAILURES=1"),
    ("turns", "states", "FAILURE_TAKEN_FOR_NO_EFFECT", "-DFAILURES=1"),
    ("turns", "states", "NO_WATCHDOG", "-DHIDDEN"),
    ("turns", "states", "WINDOW_KEEPS_SLICES", "-DHIDDEN"),
    ("turns", "states", "SLICE_KEPT_AFTER_DEATH", "-DDEATH"),
]


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr


def search(model, kind, options, folder):
    """Returns (an error was found, or None if the search itself failed; a text about it)."""
    source = str(MODELS / f"{model}.pml")
    status, text = run(["spin", "-a", *options, source], folder)
    # SPIN reports parse errors, and goes on.
    if status != 0 or "Error:" in text or not (folder / "pan.c").exists():
        return None, text
    cycles = ["-DNP", "-DNOFAIR"] if kind == "cycles" else ["-DSAFETY"]
    # For mutations, which end early, compiling takes most of the time.
    level = "-O0" if any(option.startswith("-DMUTATION") for option in options) else "-O2"
    status, text = run(["gcc", level, "-w", *cycles, f"-DMEMLIM={MEMORY_MIB}", "-o", "pan", "pan.c"], folder)
    if status != 0:
        return None, text
    # -E: the model's own process `quiet` checks the final states.
    status, text = run(["./pan", "-E", "-m200000", *(["-l"] if kind == "cycles" else [])], folder)
    errors = re.search(r"errors: (\d+)", text)
    if not errors:
        return None, text
    if errors[1] != "0":
        why = re.search(r"pan:\d*: (assertion violated|non-progress cycle)", text)
        return (True if why else None), text
    incomplete = [line for line in ("max search depth too small", "Search not completed", "reached -DMEMLIM")
                  if line in text]
    states = re.search(r"(\d+) states, stored", text)
    return (None if status != 0 or incomplete else False), text if incomplete else states[1] if states else "?"


def all_options(mutation, options):
    return options.split() + ([f"-DMUTATION_{mutation}"] if mutation else [])


def name_of(model, kind, mutation, options):
    return " ".join([model, kind, *(option[2:] for option in all_options(mutation, options))])


def check(model, kind, mutation, options, keep):
    name = name_of(model, kind, mutation, options)
    options = all_options(mutation, options)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if keep:
            folder = pathlib.Path(keep).resolve() / re.sub(r"\W+", "_", name)
            folder.mkdir(parents=True, exist_ok=True)
        try:
            found, text = search(model, kind, options, folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            found, text = None, str(error)
        if found and not mutation:
            trail = ["-k", f"{model}.pml.trail", "-p", "-g"]
            text += run(["spin", *trail, *options, str(MODELS / f"{model}.pml")], folder)[1][-4000:]
    passed = found is not None and found == bool(mutation)
    return passed, name, text, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2), metavar="JOBS")
    parser.add_argument("--only", default="", metavar="TEXT", help="checks whose name contains it")
    parser.add_argument("--keep", metavar="FOLDER", help="keep what SPIN generates, to follow a trail by hand")
    options = parser.parse_args()
    if subprocess.run(["spin", "-V"], capture_output=True, check=False).returncode != 0:
        sys.exit("spin is missing: make deps")

    started = time.monotonic()
    checks = [(model, kind, "", text) for model, kind, text in CHECKS] + MUTATIONS
    checks = [c for c in checks if options.only in name_of(*c)]
    failed = []
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        results = pool.map(lambda c: check(*c, options.keep), checks)
        for (_, _, mutation, _), (passed, name, text, seconds) in zip(checks, results):
            verdict = "caught" if mutation else f"{text} states"
            print(f"{'ok  ' if passed else 'FAIL'} {seconds:6.1f} s  {name}{': ' + verdict if passed else ''}", flush=True)
            if not passed:
                failed.append(name)
                print("the mutation was not caught" if mutation and text.isdigit() else text, flush=True)
    caught = sum(1 for c in checks if c[2])
    seconds = time.monotonic() - started
    print(f"\n{len(checks) - len(failed)} checks passed, {len(failed)} failed out of {len(checks)} "
          f"({caught} of them mutations that must be caught), in {seconds:.0f} s")
    if failed:
        print("failed:\n" + "\n".join(f"  {name}" for name in failed))
    sys.exit(bool(failed) or not checks)


if __name__ == "__main__":
    main()
