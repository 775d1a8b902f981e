#!/usr/bin/env python3
"""The pages of xsched simulate, demo, plan and of the benchmarks: whole, readable without a mouse, and with the figures that the commands print."""
import argparse
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree

from structure import faults

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOAD = """{"xsched_record":1}
{"t":0,"device":{"id":0,"platform":"CUDA","name":"NVIDIA H200","level":3}}
{"t":0,"process":{"id":1,"name":"serve <&>"}}
{"t":0,"queue":{"id":1,"process":1,"device":0,"hints":{"priority":5}}}
{"t":0,"process":{"id":2,"name":"train"}}
{"t":0,"queue":{"id":2,"process":2,"device":0,"hints":{"priority":0}}}
{"t":0,"load":{"queue":1,"commands":5,"command_ns":1000000,"period_ns":20000000}}
{"t":0,"load":{"queue":2,"command_ns":900000}}
"""
# It keeps no device busy, and says that it goes on.
HASHCAT = """#!/bin/sh
i=0
while :; do i=$((i + 1000000)); echo "{\\"progress\\": [$i, 100000000]}"; sleep 0.3; done
"""
XSCHED = None
KEEP = None  # the folder in which the pages stay, for a browser


def texts(page):
    return ["".join(element.itertext()) for element in xml.etree.ElementTree.fromstring(page.split("\n", 1)[1]).iter()]


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="xsched-pages-")
        self.addCleanup(self.folder.cleanup)
        name = self.id().rpartition("test_of_")[2]
        self.path = pathlib.Path(KEEP or self.folder.name) / f"{name}.html"

    def run_xsched(self, *arguments, **environment):
        outcome = subprocess.run([XSCHED, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout

    def test_of_simulate(self):
        load = pathlib.Path(self.folder.name) / "load"
        load.write_text(LOAD)
        printed = json.loads(self.run_xsched("simulate", str(load), "--policy", "HPF,native", "--json", "--html", str(self.path)))
        page = self.path.read_text()
        self.assertEqual(faults(page), [])
        cells = texts(page)
        for row in printed:
            for queue in row["queues"]:
                self.assertIn(f"{queue['share'] * 100:.1f}", cells)
                if queue["tasks"]:
                    self.assertIn(f"{queue['p99_ms']:.3f}", cells)
        self.assertIn("serve <&>", cells)
        self.assertEqual(page.count("<svg "), 3, "the share of each queue, and the latencies of the one that has tasks")
        latencies = next(text for text in cells if text.startswith("serve <&>: how often each latency occurred. "))
        for row in printed:
            queue = next(queue for queue in row["queues"] if queue["tasks"])
            self.assertIn(f"{row['policy']}: {queue['tasks']} times, p50 {queue['p50_ms']:.3g} ms, p99 {queue['p99_ms']:.3g} ms", latencies)

    def test_of_demo(self):
        program = pathlib.Path(self.folder.name) / "hashcat"
        program.write_text(HASHCAT)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        if not (pathlib.Path(XSCHED).parent / "xsched-latency-task").exists():
            self.skipTest("there is no OpenCL")
        printed = json.loads(self.run_xsched("demo", "--seconds", "3", "--json", "--html", str(self.path),
                                             PATH=f"{self.folder.name}:{os.environ['PATH']}",
                                             XSCHED_SOCKET=f"{self.folder.name}/socket"))
        page = self.path.read_text()
        self.assertEqual(faults(page), [])
        root = xml.etree.ElementTree.fromstring(page.split("\n", 1)[1])
        _, requests = root.iter("svg")
        dots = sum(1 for _ in requests.iter("circle"))
        self.assertEqual(dots, sum(len(printed[name]) for name in ("alone_ms", "native_ms", "xsched_ms")), "a dot for each request")
        self.assertIn(f"{max(printed['alone_ms']):.2f}", texts(page))

    def test_of_plan(self):
        sys.path[:0] = [str(ROOT / "plan"), str(ROOT / "bench" / "gpu")]
        import results_page  # pylint: disable=import-outside-toplevel
        plot = {"title": "latency", "x": "threshold", "y": "ms", "lines": {"native": [[1, 2.5], [2, 3]], "XSched": [[2, 1]]}, "x_doubles": True}
        record = {"test_id": "3.4", "test_name": "<thresholds>", "status": "passed", "notes": "", "criteria": [], "plots": [plot],
                  "latencies": {"a task": {"alone": [1.5, 2, 70], "native": [3, 3.25]}}}
        page = results_page.page([record, record | {"status": "failed", "notes": "too & late", "plots": [], "latencies": {}}],
                              types.SimpleNamespace(lines=lambda: ["1 × a device"]))
        self.path.write_text(page, encoding="utf-8")
        self.assertEqual(faults(page), [])
        self.assertIn("2.5", texts(page))
        self.assertIn("70", texts(page))

    def test_of_benchmarks(self):
        sys.path[:0] = [str(ROOT / "plan"), str(ROOT / "bench" / "gpu")]
        import figures  # pylint: disable=import-outside-toplevel
        report = figures.Report(None, {"GPU": "a device"})
        latencies = {f"{name}_ms": [factor * (1 + index % 17 / 50) for index in range(200)] for name, factor in
                     (("alone", 1), ("native", 40), ("xsched", 1.1))}
        report.add("2", "<a>", "p99 : alone", 1.1, (None, 1.25), details=latencies)
        self.path.write_text(figures.html_page([{"machine": report.machine, "rows": report.rows}]), encoding="utf-8")
        self.assertEqual(faults(self.path.read_text(encoding="utf-8")), [])


class Faults(unittest.TestCase):
    def test_are_found(self):
        page = ('<!doctype html>\n<html><head><title>t</title><style>a { b: url(c) }</style><script src="http://x/"/></head><body><h2>late</h2>'
                '<table><tr><th>a</th></tr><tr><td/><td/></tr></table><svg viewBox="0 0 9 9"><rect x="10" title="hover"/></svg></body></html>')
        found = " ".join(faults(page))
        for part in ("language", "dark", "print", "a script", "http://x/", "another file", "no order", "no caption", "no scope", "different",
                     "no role", "does not begin", "outside", "has title"):
            self.assertIn(part, found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--xsched", required=True)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the pages, which stay there")
    options, rest = parser.parse_known_args()
    XSCHED, KEEP = options.xsched, options.keep
    if KEEP:
        KEEP.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *rest])
