#!/usr/bin/env python3
"""xsched plan: without a device; over the stand-in driver with a stand-in for PyTorch; and over AMD's runtime with the software agent.

plan_test.py --xsched PROGRAM [--driver FOLDER] [--agent FOLDER] CASE…
"""
import argparse
import html
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# Tests that compare no results, because the stand-in for PyTorch computes nothing. The last one has nothing to compare.
WITHOUT_RESULTS = ("--only", "1.,2.1,2.2,2.3,2.5,4.1", "--quick", "--seconds", "0.2")
FIELDS = {"test_id", "test_name", "date", "hardware", "runtime_version", "xsched_version", "status", "metrics", "notes"}
NO_DEVICE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}

options = None


class Plan(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="xsched-plan-test-")
        self.addCleanup(self._folder.cleanup)
        self.out = pathlib.Path(self._folder.name, "out")

    def run_plan(self, *words, **environment):
        """Returns the plan's exit status, and {test: its record}."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("XSCHED_")} | environment
        done = subprocess.run([options.xsched, "plan", "--out", self.out, *words], env=environment, capture_output=True, text=True,
                              timeout=110, check=False)
        records = {one["test_id"]: one for one in map(json.loads, (file.read_text() for file in self.out.glob("*.json")))}
        for one in records.values():
            self.assertLessEqual(FIELDS, one.keys())
        if records:
            table = "".join(html.unescape((self.out / f"summary.{kind}").read_text()) for kind in ("txt", "md", "html"))
            for one in records.values():
                self.assertEqual(table.count(one["test_name"]), 3, f"in the tables: {one['test_name']}")
        self.last_output = done.stdout + done.stderr
        return done.returncode, records

    def over_the_driver(self, *words, torch, **environment):
        return self.run_plan(*words, LD_LIBRARY_PATH=str(options.driver), PYTHONPATH=str(HERE / torch), **environment)


class WithoutADevice(Plan):
    def test_every_test_is_skipped_and_none_has_passed(self):
        listed = subprocess.run([options.xsched, "plan", "--list"], capture_output=True, text=True, timeout=60, check=True).stdout
        status, records = self.run_plan(**NO_DEVICE)
        self.assertEqual(status, 77, self.last_output)
        self.assertEqual(len(records), len(listed.splitlines()))
        self.assertEqual({one["stage"] for one in records.values()}, {1, 2, 3, 4})
        self.assertEqual({(one["status"], one["notes"]) for one in records.values()}, {("skipped", "skipped: no device")})

    def test_its_help_shows_the_command_that_was_given(self):
        shown = subprocess.run([options.xsched, "plan", "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertEqual(shown.split()[:3], ["usage:", "xsched", "plan"])

    def test_what_there_is_not_is_wrong_usage(self):
        for words in (["--stage", "9"], ["--only", "7.7"], ["--bin", "/nowhere"], ["--no-such-option"]):
            self.assertEqual(self.run_plan(*words)[0], 2, words)


class OverTheStandInDriver(Plan):
    def test_each_outcome_is_reported(self):
        child_file = pathlib.Path(self._folder.name, "child")
        status, records = self.over_the_driver("--catalogue", str(HERE / "outcomes.py"), torch="no_torch",
                                               PLAN_TEST_CHILD=str(child_file))
        self.assertEqual(status, 1, self.last_output)
        told = {test: (one["status"], one["notes"].splitlines()[0]) for test, one in records.items()}
        self.assertEqual(told, {
            "1.1": ("passed", "a figure, ms: 2 misses the goal of at most 1"),
            "1.2": ("failed", "too much: 4, and at most 3 is asked for"),
            "1.3": ("skipped", "skipped: a second moon"),
            "1.4": ("failed", "the sky fell"),
            "1.5": ("failed", "KeyError: 'nothing there'"),
            "1.6": ("failed", "crashed: status -6"),
            "1.7": ("failed", "did not end within 2 s"),
            "2.1": ("skipped", "skipped: PyTorch: not installed")})
        self.assertIn("too little: 0.5, and at least 0.9 is asked for\nsaid at the end", records["1.2"]["notes"])
        self.assertEqual(len(records["1.1"]["metrics"]["seen"]), 1)
        self.assertFalse(pathlib.Path("/proc", child_file.read_text()).exists(), "the hanging test's program runs on")

    def test_the_build_and_the_ways_to_use_it_pass(self):
        status, records = self.over_the_driver(*WITHOUT_RESULTS, torch="standin_torch")
        told = {test: one["status"] for test, one in records.items()}
        self.assertEqual(told.pop("4.1"), "skipped")
        self.assertEqual(set(told.values()), {"passed"}, self.last_output)
        self.assertEqual(status, 0)

    def test_stages_that_measure_find_their_figures(self):
        # The figures themselves do not matter on a busy machine.
        _, records = self.over_the_driver("--only", "3.1,3.2,3.4", "--quick", "--seconds", "0.2", torch="standin_torch")
        self.measured(records, "3.1", "3.2", "3.4")
        plots = records["3.4"]["plots"]
        self.assertEqual([len(plot["lines"]) for plot in plots], [3, 3])
        self.assertEqual({tuple(x for x, _ in line) for plot in plots for line in plot["lines"].values()}, {(1, 2, 4, 8, 16, 32)})
        self.assertEqual((self.out / "summary.html").read_text().count("<svg"), 2)

    def test_three_classes_find_their_figures(self):
        _, records = self.over_the_driver("--catalogue", str(HERE / "three_classes.py"), "--quick", "--seconds", "0.2",
                                          torch="standin_torch")
        self.measured(records, "4.13")
        latencies = records["4.13"]["latencies"]
        self.assertEqual({title: list(series) for title, series in latencies.items()},
                         {f"the {name} class": ["alone", "native", "XSched"] for name in ("urgent", "middle")})
        page = (self.out / "summary.html").read_text()
        for title, series in latencies.items():
            self.assertIn(f"4.13 {title}: how often each latency occurred", page)
            for name, values in series.items():
                self.assertIn(f"{name}: {len(values)} values, p50", page)

    def measured(self, records, *tests):
        for test in tests:
            self.assertIn(records[test]["status"], ("passed", "failed"))
            self.assertTrue(all(criterion["value"] is not None for criterion in records[test]["criteria"]))
            self.assertGreaterEqual(len(records[test]["criteria"]), 3, records[test]["notes"])

    def test_what_there_is_no_time_for_is_skipped(self):
        status, records = self.over_the_driver("--only", "3.", "--within", "0.1", torch="standin_torch")
        self.assertEqual(status, 77, self.last_output)
        self.assertEqual({one["notes"] for one in records.values()}, {"skipped: no time left"})


class OverAmdsRuntime(Plan):
    def test_the_build_and_the_ways_to_use_it_pass(self):
        status, records = self.run_plan(*WITHOUT_RESULTS, LD_LIBRARY_PATH=str(options.agent),
                                        PYTHONPATH=str(HERE / "standin_torch"), PLAN_TEST_PLATFORM="hip")
        self.assertEqual(status, 0, self.last_output)
        told = {test: (one["status"], one["runtime_version"]["platform"]) for test, one in records.items()}
        self.assertEqual(told.pop("4.1"), ("skipped", "HIP"))
        self.assertEqual(set(told.values()), {("passed", "HIP")}, self.last_output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xsched", type=pathlib.Path, required=True)
    parser.add_argument("--driver", type=pathlib.Path)
    parser.add_argument("--agent", type=pathlib.Path)
    options, rest = parser.parse_known_args()
    unittest.main(argv=["plan_test.py", *rest])
