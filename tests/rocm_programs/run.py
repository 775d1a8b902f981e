#!/usr/bin/env python3
"""Runs real programs over AMD's runtime and the software agent: natively, preloaded, by the dispatch table alone, and preloaded while an
urgent program holds them 50 times a second. Each time they must launch the same kernels and write the same.

  run.py --build FOLDER [PROGRAM…]     the programs are programs/PROGRAM.py; by default all that are not large
"""
import argparse
import collections
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import program as programs

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from harness import Place, wait_until  # noqa: E402

NATIVE, PRELOADED, TABLE, HELD = WAYS = ("natively", "preloaded", "by the table", "held")
LIMIT_S = 600
MIN_HOLDS = 5


@dataclasses.dataclass
class Build:
    """What Place needs, and the libraries."""
    folder: pathlib.Path

    @property
    def bin(self):
        return self.folder / "bin"

    @property
    def shim(self):
        return self.folder / "lib" / "libshimhip.so"

    @property
    def agent(self):
        return self.folder / "standin-hsa"

    lib = property(lambda self: self.folder / "lib")


@dataclasses.dataclass
class Result:
    output: str
    errors: str
    status: int
    seconds: float
    kernels: collections.Counter
    submitted: int = 0  # commands, that XSched saw
    holds: int = 0


def environment(program, gpu, build, packages, compiled):
    modules = [HERE / "in_program", *(programs.SOURCES / folder for folder in program.folders)]
    libraries = [build.agent, compiled]
    if program.has_table:
        libraries.append(program.runtime_folder)
    if packages is not None:
        modules.append(packages)
        libraries.append(packages / programs.ABSENT)
    own = {name: value.format(runtime=program.runtime_library, folder=program.runtime_folder) for name, value in program.env.items()}
    return {**os.environ, **own,
            "PATH": f"{HERE / 'tools'}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(map(str, modules)),
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            "STANDIN_HSA_ISA": gpu,
            "STANDIN_HSA_KERNEL_US": str(program.kernel_us)}


def route(way, build):
    """The program's command begins with this, and its environment has this."""
    if way == TABLE:
        return [], {"XSCHED_AUTO_XQUEUE": "ON", "XSCHED_SCHEDULER": "GLB", "ROCPROFILER_REGISTER_LIBRARY": str(build.shim)}
    return [] if way == NATIVE else [str(build.bin / "xsched"), "run", "-p", "0", "--"], {}


def watch(place, process):
    """Until the process ends, how many commands the server sees of it, and how often it holds it."""
    submitted = holds = 0
    end = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < end:
        queues = [queue for queue in place.queues() if queue["pid"] == process.pid] if place.server else []
        submitted = max([submitted, *(queue["submitted"] for queue in queues)])
        holds = max([holds, *(queue["holds"] for queue in queues)])
        time.sleep(0.05)
    process.kill()
    return submitted, holds


def run(command, env, place):
    log, output, errors = (pathlib.Path(place.folder) / name for name in ("kernels", "output", "errors"))
    log.touch()
    begin = time.monotonic()
    with output.open("w") as out, errors.open("w") as err:
        process = subprocess.Popen(command, env={**env, "STANDIN_HSA_LOG": str(log)}, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   cwd=place.folder)
        submitted, holds = watch(place, process)
        status = process.wait()
    # A line: "<GPU> <queue> <kernel>".
    kernels = collections.Counter(line.split(" ", 2)[2] for line in log.read_text().splitlines())
    return Result(output.read_text(), errors.read_text(), status, time.monotonic() - begin, kernels, submitted, holds)


def start_urgent(program, env, place, build):
    command = [str(build.bin / "xsched"), "run", "-p", "5", "--", sys.executable, str(HERE / "urgent.py"), program.runtime_library]
    process = subprocess.Popen(command, env={**env, **place.env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: any(queue["priority"] == 5 for queue in place.queues()), "the urgent program runs", 60)
    return process


def run_one_way(program, way, env, build):
    place = Place(build)
    urgent = None
    try:
        prefix, more = route(way, build)
        if way != NATIVE:
            place.start_server()
        if way == HELD:
            urgent = start_urgent(program, env, place, build)
        return run([*prefix, sys.executable, str(program.path)], {**env, **place.env, **more}, place)
    finally:
        if urgent is not None:
            urgent.kill()
            urgent.wait()
        place.close()


def failures(way, result, native):
    if result.status != 0:
        yield f"ends with {result.status}: {result.errors[-2000:]}"
    if way == NATIVE:
        if not result.kernels:
            yield "launches no kernels"
        return
    if result.output != native.output:
        yield f"writes\n{result.output}\ninstead of\n{native.output}"
    if result.kernels != native.kernels:
        yield f"launches more {result.kernels - native.kernels}, and fewer {native.kernels - result.kernels}"
    if result.submitted == 0:
        yield "is not scheduled"
    if way == HELD and result.holds < MIN_HOLDS:
        yield f"is held {result.holds} times only"


def run_program(program, gpu, build, packages):
    """True: it is the same each way."""
    native = None
    passed = True
    times = []
    # Caches, such as of compiled kernels, are the program's own, and empty at first.
    with tempfile.TemporaryDirectory() as home:
        compiled = pathlib.Path(home) / "libraries"
        programs.compile_libraries(program, compiled)
        env = {**environment(program, gpu, build, packages, compiled), "HOME": home}
        for way in WAYS if program.has_table else (NATIVE, PRELOADED, HELD):
            result = run_one_way(program, way, env, build)
            native = native or result
            for failure in failures(way, result, native):
                print(f"failed: {program.name} on {gpu}, {way}: {failure}", flush=True)
                passed = False
            times.append(f"{way} {result.seconds:.0f} s" + (f" ({result.holds} times)" if way == HELD else ""))
            if not passed:
                break
    print(f"{program.name}, {program.runtime}, {gpu}: {native.kernels.total()} kernels; {', '.join(times)}", flush=True)
    return passed


def wanted(options):
    available = {path.stem: path for path in sorted((HERE / "programs").glob("*.py"))}
    if unknown := set(options.programs) - set(available):
        sys.exit(f"no such program: {' '.join(unknown)}")
    programs_here = [programs.read(available[name]) for name in options.programs or available]
    return [program for program in programs_here if options.programs or options.large or not program.large]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build with xsched, xserver, shimhip, standin_hsa")
    parser.add_argument("--packages", type=pathlib.Path, default=programs.SOURCES / "build" / "rocm" / "programs",
                        help="where packages are kept (build/rocm/programs)")
    parser.add_argument("--large", action="store_true", help="the large ones as well")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    build = Build(options.build.resolve())
    passed = True
    for program in wanted(options):
        if (why := program.why_not_here()) is not None:
            print(f"skipped: {program.name}: {why}", flush=True)
            passed = passed and not options.programs
            continue
        packages = programs.installed(program, options.packages)
        passed = all([run_program(program, gpu, build, packages) for gpu in program.gpus]) and passed
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
