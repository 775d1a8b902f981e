#!/usr/bin/env python3
"""Runs the fuzzers of a build of the preset fuzz (tests/fuzz), each from the inputs that are kept in tests/fuzz/corpus: one file of each
fuzzer, with one input in base64 in each line.

  fuzz.py run [--seconds 20]    looks for inputs that end a fuzzer, as many fuzzers at a time as there are processors
  fuzz.py coverage [--found]    which lines the kept inputs reach; fails if these are less than 85 % of a part. With --found: with
                                those that were found since
  fuzz.py keep                  keeps the smallest set of inputs that reaches what all those reach that were found

What was found is in BUILD/corpus, and what ended a fuzzer in BUILD/found.
"""
import argparse
import base64
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests/fuzz/corpus"
LEAST = 85  # percent
LONGEST = 4096  # bytes of an input
# What each part is measured by: every file in it that the fuzzers' library has.
PARTS = {
    "src/server": ["src/server/"],
    "src/ipc": ["src/ipc/"],
    "readers": [
        "src/cli/doctor/elf_file.cc", "src/cli/explain/process_waits.cc", "src/cli/record/recording_lines.cc", "src/cli/record/recording_writer.cc",
        "src/cli/server_session.cc", "src/cli/simulate/device_file.cc", "src/cli/simulate/load_file.cc", "src/cli/trace/chrome_trace.cc",
        "src/cli/trace/timeline.cc",
        "src/hal/cuda/channel_groups/object_table.cc", "src/hal/cuda/channel_groups/resource_manager.cc", "src/hal/hip/kfd/requests.cc",
        "src/hal/hip/kfd/sysfs.cc", "src/kubernetes/pods.cc", "src/kubernetes/shares.cc", "src/preempt/scheduling/agent.cc",
        "src/preempt/scheduling/server_client.cc", "src/sched/core/policy_setting.cc", "src/shim/common/json.cc",
        "src/shim/common/pass_rules.cc", "src/slurm/settings.cc",
    ],
}  # fmt: skip


class Fuzzer:
    def __init__(self, program, build):
        self.name = program.name.removeprefix("fuzz_")
        self.program = program
        self.kept = KEPT / f"{self.name}.txt"
        self.inputs = build / "corpus" / self.name
        self.found = build / "found" / self.name
        for folder in (self.inputs, self.found):
            folder.mkdir(parents=True, exist_ok=True)
        dictionary = build / "generated/ipc/messages.dict"
        self.options = [f"-dict={dictionary}"] if self.name in ("session", "client") else []
        self.write_kept(self.inputs)

    def write_kept(self, folder):
        for line in self.kept.read_text().split() if self.kept.exists() else []:
            data = base64.b64decode(line)
            (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)

    def run(self, *arguments, **environment):
        """What it prints, after its last progress. Raises where it fails."""
        done = subprocess.run([self.program, *self.options, f"-max_len={LONGEST}", "-timeout=60", "-rss_limit_mb=4096",
                               f"-artifact_prefix={self.found}/", *map(str, arguments)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                              env=os.environ | {"LLVM_PROFILE_FILE": os.devnull} | environment)  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"fuzz_{self.name} failed:\n" + "\n".join(done.stdout.splitlines()[-60:]))
        return done.stdout.rstrip().splitlines()[-1]


def run(fuzzers, options):
    def one(fuzzer):
        said = fuzzer.run(f"-max_total_time={options.seconds}", fuzzer.inputs)
        return f"{fuzzer.name}: {said}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(one, fuzzer) for fuzzer in fuzzers]
    for done in runs:
        print(done.exception() or done.result(), flush=True)
    if any(done.exception() for done in runs):
        sys.exit(1)


def lines_reached(fuzzers, options):
    """{file: (reached, all)} of the files of the fuzzers' library, by running inputs."""
    folder = options.build / "coverage"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

    def one(fuzzer):
        inputs = fuzzer.inputs
        if not options.found:
            inputs = folder / fuzzer.name
            inputs.mkdir()
            fuzzer.write_kept(inputs)
        fuzzer.run("-runs=0", inputs, LLVM_PROFILE_FILE=str(folder / f"{fuzzer.name}.profraw"))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, fuzzers))
    merged = folder / "all.profdata"
    subprocess.run(["llvm-profdata", "merge", "-sparse", *folder.glob("*.profraw"), "-o", merged], check=True)
    report = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", fuzzers[0].program],
                            check=True, capture_output=True, text=True)  # fmt: skip
    reached = {}
    for file in json.loads(report.stdout)["data"][0]["files"]:
        path = pathlib.Path(os.path.normpath(file["filename"]))
        if path.is_relative_to(ROOT) and "testing" not in path.parts:
            lines = file["summary"]["lines"]
            reached[str(path.relative_to(ROOT))] = (lines["covered"], lines["count"])
    return reached


def coverage(fuzzers, options):
    files = lines_reached(fuzzers, options)
    too_little = []
    for part, prefixes in PARTS.items():
        of_part = {file: lines for file, lines in files.items() if file.startswith(tuple(prefixes))}
        missing = [prefix for prefix in prefixes if not any(file.startswith(prefix) for file in of_part)]
        if missing:
            sys.exit(f"no fuzzer has {', '.join(missing)}")
        if options.files:
            for file, (covered, count) in sorted(of_part.items()):
                print(f"  {file}: {covered} of {count}")
        covered, count = (sum(numbers) for numbers in zip(*of_part.values()))
        print(f"{part}: {100 * covered / count:.1f} % of {count} lines")
        if 100 * covered < LEAST * count:
            too_little.append(part)
    if too_little:
        sys.exit(f"less than {LEAST} % of {', '.join(too_little)}")


def keep(fuzzers, options):
    KEPT.mkdir(exist_ok=True)

    def one(fuzzer):
        smallest = options.build / "smallest" / fuzzer.name
        shutil.rmtree(smallest, ignore_errors=True)
        smallest.mkdir(parents=True)
        # By what is reached, and not by how often.
        fuzzer.run("-set_cover_merge=1", "-use_counters=0", smallest, fuzzer.inputs)
        inputs = sorted((file.read_bytes() for file in smallest.iterdir()), key=lambda data: (len(data), data))
        fuzzer.kept.write_text("".join(base64.b64encode(data).decode() + "\n" for data in inputs if data))
        return f"{fuzzer.name}: {len(inputs)} inputs, {fuzzer.kept.stat().st_size} bytes"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        print("\n".join(pool.map(one, fuzzers)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "coverage", "keep"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/fuzz")
    parser.add_argument("--seconds", type=int, default=20, help="for each fuzzer")
    parser.add_argument("--files", action="store_true", help="coverage: also of each file")
    parser.add_argument("--found", action="store_true", help="coverage: also by the inputs that were found")
    parser.add_argument("fuzzer", nargs="*", help="only these: session, segment, …")
    options = parser.parse_args()
    programs = sorted(path for path in (options.build / "bin").glob("fuzz_*") if os.access(path, os.X_OK))
    fuzzers = [Fuzzer(program, options.build) for program in programs]
    fuzzers = [fuzzer for fuzzer in fuzzers if not options.fuzzer or fuzzer.name in options.fuzzer]
    if not fuzzers:
        sys.exit(f"no fuzzer in {options.build}/bin: make fuzz")
    try:
        {"run": run, "coverage": coverage, "keep": keep}[options.what](fuzzers, options)
    except RuntimeError as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
