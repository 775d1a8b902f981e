#!/usr/bin/env python3
"""Tests of the GPU benchmarks' computations, and of their communication with a program."""
import json
import pathlib
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import figures  # noqa: E402
from worker import Worker, WorkerError  # noqa: E402


class Figures(unittest.TestCase):
    def test_the_99th_percentile_of_a_hundred_is_the_worst(self):
        self.assertEqual(figures.percentile(list(range(100, 0, -1)), 0.99), 100)
        self.assertEqual(figures.percentile(list(range(1, 201)), 0.99), 199)
        self.assertEqual(figures.percentile([7], 0.99), 7)

    def test_a_rate_is_interpolated_at_the_edges_of_its_window(self):
        progress = [[0, 0], [1, 10], [2, 30], [3, 30]]
        self.assertAlmostEqual(figures.rate(progress, 0.5, 1.5), 15)
        self.assertAlmostEqual(figures.rate(progress, 0, 3), 10)

    def test_a_window_that_is_not_covered_is_refused(self):
        for begin, end in ((-1, 1), (0, 4), (1, 1)):
            with self.assertRaises(ValueError):
                figures.rate([[0, 0], [3, 30]], begin, end)

    def test_goals_bound_from_above_from_below_or_both(self):
        self.assertTrue(figures.within(1.25, (None, 1.25)))
        self.assertFalse(figures.within(1.26, (None, 1.25)))
        self.assertFalse(figures.within(0.96, (0.97, None)))
        self.assertTrue(figures.within(50, (45, 55)))

    def test_a_report_is_on_disk_after_every_row(self):
        with tempfile.TemporaryDirectory() as folder:
            report = figures.Report(f"{folder}/results.json", {"gpu": "one"})
            report.add("2", "a", "p99 : alone", 1.2, (None, 1.25), alone=figures.summary([1.0]))
            report.note("2", "b", "failed: no such thing")
            written = json.loads(pathlib.Path(folder, "results.json").read_text(encoding="utf-8"))
        self.assertEqual([row.get("met") for row in written["rows"]], [True, None])

    def test_a_later_run_replaces_the_rows_of_an_earlier_one(self):
        def run(case, value):
            report = figures.Report(None)
            report.add("1", case, "ratio", value)
            return {"machine": {}, "rows": report.rows}
        rows = figures.merged([run("a", 1), run("b", 2), run("a", 3)])
        self.assertEqual([(row["case"], row["value"]) for row in rows], [("b", 2), ("a", 3)])

    def test_the_table_says_what_was_missed_and_what_failed(self):
        report = figures.Report(None)
        report.add("2", "a", "p99 : alone", 1.3, (None, 1.25))
        report.note("3", "b", "failed")
        text = figures.table(report.rows)
        self.assertIn("| 2 | a |", text)
        self.assertIn("≤ 1.25 | **no** |", text)
        self.assertIn("- 3, b: failed", text)

    def test_the_page_has_the_table_and_the_latencies_of_each_row_with_samples(self):
        report = figures.Report(None, {"GPU": "<one>"})
        report.add("2", "a", "p99 : alone", 1.3, (None, 1.25), details={"alone_ms": [1.0, 1.5], "native_ms": [20.0],
                                                                           "xsched_ms": list(range(1, 201)), "more": 3})
        report.add("3", "b", "ratio", 1.0)
        report.note("4", "c", "failed")
        text = figures.html_page([{"machine": report.machine, "rows": report.rows}])
        self.assertEqual(text.count("<svg"), 1)
        for part in ("2, a: how often each latency occurred", "native: 1 values, p50 20 ms", "XSched: 200 values, p50 101 ms, p99 199 ms",
                     "<td>≤ 1.25</td><td>no</td>", "[4] c: failed", "&lt;one&gt;"):
            self.assertIn(part, text)

    def test_the_picture_has_the_latencies_of_each_row_with_samples_and_needs_no_page(self):
        report = figures.Report(None)
        for case in ("a", "<b>"):
            report.add("2", case, "p99 : alone", 1.3, details={"native_ms": [20.0], "xsched_ms": list(range(1, 201))})
        report.add("3", "c", "ratio", 1.0)
        svg = xml.etree.ElementTree.fromstring(figures.distributions.sheet("title", "ms", figures.distributed(report.rows), figures.percentile))
        name = "{http://www.w3.org/2000/svg}"
        self.assertEqual([group.find(f"{name}text").text for group in svg.findall(f"{name}g")], ["2, a", "2, <b>"])
        self.assertNotIn("var(", xml.etree.ElementTree.tostring(svg, encoding="unicode"))
        bottoms = [float(group.get("transform").split()[1].rstrip(")")) for group in svg.findall(f"{name}g")]
        self.assertGreater(float(svg.get("viewBox").split()[3]), bottoms[-1] + 60)


class Workers(unittest.TestCase):
    def start(self, program, seconds=20):
        deadline = time.monotonic() + seconds
        log = tempfile.TemporaryFile("w")
        self.addCleanup(log.close)
        worker = Worker([sys.executable, "-c", program], None, log, lambda: deadline)
        self.addCleanup(worker.close)
        return worker

    SERVE = (
        f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parent)!r})\n"
        "import time\n"
        "from worker import Commands\n"
        "commands = Commands()\n"
        "def run(command):\n"
        "    if command['do'] == 'fail': raise ValueError('so')\n"
        "    if command['do'] == 'run':\n"
        "        while not commands.interrupted(): time.sleep(0.001)\n"
        "    print('a library talks')\n"
        "    return command['do']\n"
        "commands.serve(run)\n")

    def test_commands_are_answered_in_order_and_failures_do_not_end_the_program(self):
        worker = self.start(self.SERVE)
        self.assertEqual(worker.ask(do="a"), "a")
        with self.assertRaisesRegex(WorkerError, "ValueError: so"):
            worker.ask(do="fail")
        self.assertEqual(worker.ask(do="b"), "b")

    def test_a_command_runs_until_it_is_stopped(self):
        worker = self.start(self.SERVE)
        worker.send(do="run")
        self.assertEqual(worker.stop(), "run")
        self.assertEqual(worker.ask(do="c"), "c")

    def test_a_program_that_ends_or_hangs_is_an_error_and_not_a_wait(self):
        with self.assertRaisesRegex(WorkerError, "status 3|ended early"):
            self.start("raise SystemExit(3)").ask(do="a")
        with self.assertRaisesRegex(WorkerError, "in time"):
            self.start("import time; time.sleep(60)", seconds=0.3).ask(do="a")


if __name__ == "__main__":
    unittest.main()
