"""Correctness: runs every check natively and under XSched. An urgent competitor makes sure that the checked program is held."""
import concurrent.futures
import json
import math
import os
import shutil
import subprocess
import sys

from kernel_stages import HIGH, LOW, TASK
from session import HERE, Skipped

CHECKS = str(HERE / "correct.py")
AT_A_TIME = 4  # groups


def groups():
    return subprocess.run([sys.executable, CHECKS, "--list"], capture_output=True, text=True, check=True).stdout.split()


def answers(session, prefix, scheduled, group, seconds, checks=()):
    """{check: its line} of a group, or only of these checks. If the group was ended early, the rest is missing."""
    seconds = min(seconds, session.left())
    command = [*prefix, sys.executable, CHECKS, group, *checks]
    try:
        output = subprocess.run(command, env=session.environment(scheduled), stdout=subprocess.PIPE, stderr=session.log,
                                timeout=seconds, check=False).stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    lines = [json.loads(line) for line in output.decode(errors="replace").splitlines() if line.startswith("{")]
    return {line["check"]: line for line in lines}


def comparison(native, ours):
    """Compares the two answers of a check. Returns one word."""
    if native is None or "error" in native:
        return f"fails natively: {(native or {}).get('error', 'no answer')}"
    if "skipped" in native:
        return f"skipped: {native['skipped']}"
    if ours is None or "sums" not in ours:
        return f"FAILS: {(ours or {}).get('error', 'no answer')}"
    if native["under_xsched"] or not ours["under_xsched"]:
        return "FAILS: XSched is in the wrong one of the two"
    if native["sums"] == ours["sums"]:
        return "same"
    if len(native["sums"]) == len(ours["sums"]) and all(
            math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-3) for a, b in zip(native["sums"], ours["sums"])):
        return "same within 1e-4"
    return "DIFFERENT"


def correct(session):
    names = groups()
    with session.step("correct", "all groups", 300), session.server():
        competitor = session.kernels(*HIGH, scheduled=True)
        session.ready([competitor])
        competitor.send(do="task", **TASK, seconds=session.left())
        seconds = session.left() - 10
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            def both(group):
                return (answers(session, [], False, group, seconds / 2),
                        answers(session, session.prefix(*map(str, LOW)), True, group, seconds / 2))
            for group, (native, ours) in zip(names, pool.map(both, names)):
                if not native:
                    session.report.note("correct", group, "no answer natively")
                for check in native:
                    result = comparison(native[check], ours.get(check))
                    if result.startswith(("skipped", "fails natively")):
                        session.report.note("correct", check, result)
                    else:
                        session.report.add("correct", check, result, int(result.startswith("same")), (1, 1),
                                           details={"native": native[check], "xsched": ours.get(check)})


def python(session):
    """The Python package with PyTorch."""
    folder = HERE.parent.parent / "python"
    with session.step("correct", "the Python package", 120), session.server():
        environment = {**session.environment(True), "PYTHONPATH": str(folder), "PATH": f"{session.binaries}:{os.environ['PATH']}",
                       "XSCHED_LIBRARY_DIR": str(session.binaries.parent / "lib")}
        output = subprocess.run([*session.prefix(), sys.executable, str(HERE / "python_check.py")], env=environment,
                                stdout=subprocess.PIPE, stderr=session.log, text=True, timeout=100, check=True).stdout
        for line in output.splitlines():
            answer = json.loads(line)
            session.report.add("correct", f"Python: {answer['check'].replace('_', ' ')}", answer["result"],
                               int(answer["result"] == "ok"), (1, 1))


def sanitizer(session):
    """compute-sanitizer finds nothing in a small program, natively and under XSched."""
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    with session.step("correct", "compute-sanitizer", 120), session.server():
        if tool is None:
            raise Skipped("no compute-sanitizer")
        commands = [json.dumps({"do": "use", **session.calibration}), json.dumps({"do": "count", "kernel_us": 20, "kernels": 50})]
        for scheduled in (False, True):
            prefix = session.prefix(*map(str, LOW)) if scheduled else []
            done = subprocess.run([*prefix, tool, "--error-exitcode", "9", str(session.binaries / "gpu_task"), *commands],
                                  env=session.environment(scheduled), capture_output=True, text=True, timeout=session.left(),
                                  check=False)
            session.log.write(done.stdout + done.stderr)
            session.report.add("correct", f"compute-sanitizer{', XSched' if scheduled else ''}", "exit status", done.returncode,
                               (0, 0))
