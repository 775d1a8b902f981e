#!/usr/bin/env python3
"""An unmodified program: rocBLAS's own tests, built by Debian (librocblas4-tests). They compare the results of AMD's library over the
software HSA agent with the CPU's: natively, and while a more urgent program holds them repeatedly."""
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from harness import Client, check, main, test, wait_until  # noqa: E402

PROGRAM = os.environ.get("ROCBLAS_TEST", "")
# Products in float of all shapes. The agent can compute these.
FILTER = ":".join(f"*/{tests}" for tests in ("gemm.*quick_gemm_small_f32_r_*", "gemm.*quick_gemm_fortran_f32_r_*",
                                             "gemm_strided_batched.*quick_gemm_strided_batched_*f32_r_??_*"))


class Program(Client):
    def __init__(self, place, priority, command, **env):
        self.start(place, [str(place.bin / "xsched"), "run", "-p", str(priority), "--", *command], env)


def passed(text):
    found = re.search(r"\[  PASSED  \] (\d+) tests", text)
    return int(found[1]) if found else 0


@test
def rocblas_passes_its_tests_while_it_is_held_time_and_again(place):
    environment = {"LD_LIBRARY_PATH": os.environ["STANDIN_HSA"]}
    command = [PROGRAM, f"--gtest_filter={FILTER}"]
    begin = time.monotonic()
    native = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    check(native.returncode == 0 and passed(native.stdout) > 1000, f"it passes them natively: {native.stdout[-300:]}")

    # Before its first test, it reads its list of tests for a minute, or much longer on a busy machine.
    start = 240 + time.monotonic() - begin

    place.start_server()
    tests = Program(place, 0, command, **environment)
    queue = lambda: [q for q in place.queues() if q["pid"] == tests.process.pid]  # noqa: E731
    wait_until(queue, "its queues are there", start)
    holds = 0
    while tests.process.poll() is None:
        rival = Program(place, 5, [os.environ["HIP_CLIENT"]])
        wait_until(lambda: tests.process.poll() is not None or any(q["state"] == "held" for q in queue()), "it is held")
        holds += tests.process.poll() is None
        rival.end()
        place.clients.remove(rival)
    tests.reader.join()
    text = "\n".join(tests.lines)
    check(holds > 0, "it was held")
    check(tests.process.returncode == 0 and passed(text) == passed(native.stdout), f"and passes as many: {text[-300:]}")
    print(f"{passed(text)} tests, held {holds} times")


main(__doc__)
