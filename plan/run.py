#!/usr/bin/env python3
"""The test plan: tests XSched on this machine's GPU, from the build to PyTorch. Figures are compared with native ones of the same run.

Each test is a separate process with a time limit. It writes OUT/<test>.json and OUT/<test>.log. OUT/summary.html has the table and
plots; summary.txt and summary.md have the table. If a test is not possible on this machine, it is skipped and reports what is missing.
Without a device, all are skipped.

Exit status: 0 no test failed, and some passed; 1 some failed; 2 wrong usage; 77 all were skipped; 130 interrupted.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

import catalogue
import machine as machines
import record
import results_page
from platforms import PLATFORMS
from supervisor import TIMED_OUT, Supervisor

AT_A_TIME = 8  # the most tests at a time that measure nothing
CORES_EACH, GIB_EACH = 2, 8  # cores and device memory for each of these
QUICK_SECONDS = 1.5
SECONDS = 8
QUICK_WITHIN = 230
SHORTEST = 15  # seconds: if less time is left, no test begins
TO_END = 12  # a test gives up by itself so many seconds before its limit
NOTES_OF_LOG = 3000  # characters


def arguments(argv):
    parser = argparse.ArgumentParser(prog="xsched plan", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--bin", type=pathlib.Path, help="the folder with xsched and xserver (libraries in ../lib)")
    where.add_argument("--prefix", type=pathlib.Path, help="an installed tree")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("xsched-plan"), help="(default ./xsched-plan)")
    parser.add_argument("--html", type=pathlib.Path, help="also write the page of the results (OUT/summary.html) to this file")
    parser.add_argument("--stage", help=f"stages, with commas: {', '.join(f'{n} {name}' for n, name in catalogue.STAGES.items())}")
    parser.add_argument("--only", help="tests, with commas: 3.2, or the beginning of a number with a dot at its end")
    parser.add_argument("--list", action="store_true", help="list the tests")
    parser.add_argument("--quick", action="store_true", help="shorter measurements, fewer tests: within four minutes")
    parser.add_argument("--seconds", type=float, help=f"of one measurement (default {SECONDS}; quick: {QUICK_SECONDS})")
    parser.add_argument("--within", type=float, help=f"end within so many seconds, and skip what there is no time for (quick: {QUICK_WITHIN})")
    parser.add_argument("--platform", choices=PLATFORMS, help="(default: PyTorch's, where there is one)")
    parser.add_argument("--catalogue", type=pathlib.Path, default=catalogue.HERE / "stages.py", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.seconds is None:
        options.seconds = QUICK_SECONDS if options.quick else SECONDS
    if options.within is None and options.quick:
        options.within = QUICK_WITHIN
    try:
        options.tests = chosen(catalogue.load(options.catalogue).in_order(), options)
    except ValueError as error:
        parser.error(str(error))
    if not options.list:
        options.bin = find_binaries(options)
        if options.bin is None:
            parser.error("no xsched there (--bin or --prefix says where; make builds it)")
    return options


def find_binaries(options):
    """The path of xsched: from the options, or else beside an installed plan, in the source tree's build, or in PATH."""
    found = shutil.which("xsched")
    places = ([options.bin] if options.bin else [options.prefix / "bin"] if options.prefix else
              [catalogue.ROOT / "build" / "release" / "bin", catalogue.ROOT.parent.parent / "bin",
               *([pathlib.Path(found).resolve().parent] if found else [])])
    return next((place.resolve() for place in places if (place / "xsched").is_file()), None)


def chosen(tests, options):
    """The tests that the options name, in order."""
    if options.stage:
        stages = set(options.stage.split(","))
        if unknown := stages - set(map(str, catalogue.STAGES)):
            raise ValueError(f"no such stage: {', '.join(sorted(unknown))}")
        tests = [test for test in tests if str(test.stage) in stages]
    if options.only:
        names = options.only.split(",")
        for name in names:
            if not any(matches(test, name) for test in tests):
                raise ValueError(f"no such test: {name}")
        tests = [test for test in tests if any(matches(test, name) for name in names)]
    elif options.quick:
        tests = [test for test in tests if test.quick]
    return tests


def matches(test, name):
    return test.id == name or (name.endswith(".") and test.id.startswith(name))


class Plan:
    def __init__(self, options, machine, begin):
        self.options = options
        self.machine = machine
        self.records = {}
        self._supervisor = Supervisor()
        self._end = begin + options.within if options.within else None

    def run(self):
        """Runs all tests: several at a time, and then those that measure, one by one."""
        try:
            self._side_by_side([test for test in self.options.tests if not test.measures])
            for test in self.options.tests:
                if test.measures:
                    self._supervisor.sweep()
                    self._one(test)
        finally:
            self._supervisor.sweep()
            self.write_summary()

    def _side_by_side(self, tests):
        hardware = self.machine.hardware()
        at_a_time = max(2, min(AT_A_TIME, hardware["cores"] // CORES_EACH, hardware["memory_gib"] // GIB_EACH))
        with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
            try:
                for _ in pool.map(self._one, tests):
                    pass
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                self._supervisor.stop_all()
                raise

    def write_summary(self):
        records = [self.records[test.id] for test in self.options.tests if test.id in self.records]
        record.write(self.options.out / "summary.txt", record.text_table(records, self.machine))
        record.write(self.options.out / "summary.md", record.markdown_table(records, self.machine))
        for path in filter(None, (self.options.out / "summary.html", self.options.html)):
            record.write(path, results_page.page(records, self.machine))

    def status(self):
        totals = record.totals(self.records.values())
        return 1 if totals[record.FAILED] else 0 if totals[record.PASSED] else 77

    def _one(self, test):
        date = record.now()
        missing = self.machine.missing(test)
        limit = min(test.seconds, self._end - time.monotonic()) if self._end else test.seconds
        if missing is None and limit < min(SHORTEST, test.seconds):
            missing = "no time left"
        result = {"status": record.SKIPPED, "notes": missing} if missing else self._in_process(test, limit)
        if result["status"] == record.FAILED and limit < test.seconds and result["seconds"] > limit - TO_END:
            result["status"], result["notes"] = record.SKIPPED, "no time left: it was begun, and ended early"
        if result["status"] == record.SKIPPED:
            result["notes"] = f"skipped: {result['notes']}"
        one = record.record(test, self.machine, date=date, **result)
        self.records[test.id] = one
        record.write(self.options.out / f"{test.id}.json", one)
        # With the end of the line in the text: print would write it by itself, and another thread's line might come between.
        print(f"{one['status']:<8} {test.id:<5} {one['seconds']:5.0f} s  {test.name}: {record.result_text(one)}\n", end="", flush=True)

    def _in_process(self, test, limit):
        """The outcome as arguments of record(): the test's own report, or that it crashed or hung."""
        log_path = self.options.out / f"{test.id}.log"
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="xsched-plan-") as folder, open(log_path, "w", encoding="utf-8") as log:
            order, outcome = pathlib.Path(folder, "order.json"), pathlib.Path(folder, "outcome.json")
            order.write_text(json.dumps({
                "catalogue": str(self.options.catalogue.resolve()), "test": test.id, "binaries": str(self.options.bin),
                "seconds": self.options.seconds, "quick": self.options.quick, "limit": limit, "result": str(outcome),
                "machine": dataclasses.asdict(self.machine)}), encoding="utf-8")
            status = self._supervisor.run([sys.executable, "-u", str(catalogue.HERE / "one_test.py"), str(order)], log, limit)
            if status == 0 and outcome.is_file():
                result = json.loads(outcome.read_text(encoding="utf-8"))
            else:
                why = f"did not end within {limit:.0f} s" if status == TIMED_OUT else f"crashed: status {status}"
                result = {"status": record.FAILED, "notes": why, "seconds": time.monotonic() - begin}
        if result["status"] == record.FAILED:
            end = log_path.read_text(encoding="utf-8", errors="replace")[-NOTES_OF_LOG:]
            result["notes"] += f"\n--- the end of {log_path.name}:\n{end}"
        return result


def main(argv=None):
    options = arguments(argv)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # an installed tree must not change
    if options.list:
        for test in options.tests:
            print(f"{test.id:<5} {test.name}{'' if test.quick else ' (not in a quick run)'}")
        return 0
    begin = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    plan = Plan(options, machines.examine(options.bin, options.platform), begin)
    print("\n".join(plan.machine.lines()) + "\n", flush=True)
    try:
        plan.run()
    except KeyboardInterrupt:
        print("interrupted")
        return 130
    print(f"\n{record.totals_text(plan.records.values())}, in {time.monotonic() - begin:.0f} s; see {options.out}/summary.txt")
    return plan.status()


if __name__ == "__main__":
    sys.exit(main())
