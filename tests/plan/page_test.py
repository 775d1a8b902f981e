#!/usr/bin/env python3
"""The page with the plan's results (plan/results_page.py): what it draws is where it should be, and its text cannot break it."""
import pathlib
import sys
import types
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "plan"), str(ROOT / "bench" / "gpu")]
import distributions  # noqa: E402
import page  # noqa: E402
import results_page  # noqa: E402
from page import Plot  # noqa: E402

MACHINE = types.SimpleNamespace(lines=lambda: ["1 × <a device>"])


def drawn(plot):
    """The points of each line of the picture."""
    root = xml.etree.ElementTree.fromstring(page.svg(plot))
    return [[tuple(map(float, point.split(","))) for point in line.get("points").split()] for line in root.iter("polyline")]


def record(**changes):
    return {"test_id": "3.4", "test_name": "thresholds", "status": "passed", "notes": "", "criteria": [], "plots": [], "latencies": {}} | changes


class Ticks(unittest.TestCase):
    def test_they_are_round_and_reach_beyond_the_values(self):
        self.assertEqual(page.ticks([0.3, 9.7]), [0, 2, 4, 6, 8, 10])
        self.assertEqual(page.ticks([-3, 5]), [-4, -2, 0, 2, 4, 6])
        self.assertEqual(page.ticks([1234]), [0, 250, 500, 750, 1000, 1250])

    def test_there_are_some_without_values_and_for_zeros_only(self):
        for values in ([], [0, 0]):
            self.assertGreater(len(page.ticks(values)), 1)


class Pictures(unittest.TestCase):
    def test_a_greater_value_is_higher_and_a_later_one_further_right(self):
        (line,) = drawn(Plot("t", "x", "y", {"a": [[1, 5], [2, 10], [3, -1]]}))
        self.assertEqual(sorted(line), line)
        self.assertLess(line[1][1], line[0][1])
        self.assertLess(line[0][1], line[2][1])

    def test_every_point_is_inside(self):
        for plot in (Plot("t", "x", "y", {"a": [[1, -5], [64, 1e6]], "b": [[2, 3]]}, x_doubles=True), Plot("t", "x", "y", {"a": [[0, 0]]})):
            for line in drawn(plot):
                for x, y in line:
                    self.assertTrue(page.LEFT <= x <= page.WIDTH - page.RIGHT and page.TOP <= y <= page.HEIGHT - page.BOTTOM)

    def test_where_x_doubles_equal_factors_are_equally_far(self):
        ((one, two, four, _),) = drawn(Plot("t", "x", "y", {"a": [[1, 1], [2, 1], [4, 1], [32, 1]]}, x_doubles=True))
        self.assertAlmostEqual(two[0] - one[0], four[0] - two[0], delta=0.2)


class Distributions(unittest.TestCase):
    def test_equal_factors_are_equally_far_and_what_occurs_twice_is_twice_as_high(self):
        root = xml.etree.ElementTree.fromstring(distributions.figure("t", "ms", {"a": [1, 10, 10, 99.9]}))
        bars = [(float(bar.get("x")), float(bar.get("height"))) for bar in root.iter("rect")]
        self.assertEqual(bars, [(distributions.LEFT, 11), (distributions.LEFT + distributions.PLOT / 2, 22),
                                (distributions.LEFT + distributions.PLOT * 59 / 60 // 0.1 / 10, 11)])

    def test_the_axis_has_round_numbers_around_all_values(self):
        self.assertEqual(distributions.around([0.3, 70]), (0.2, 100))
        self.assertEqual(distributions.around([5]), (5, 50))
        self.assertEqual(distributions.ticks(0.2, 10), [0.2, 0.5, 1, 2, 5, 10])
        self.assertEqual(distributions.ticks(1, 1e4), [1, 10, 100, 1000, 10000])

    def test_words_say_what_the_picture_shows(self):
        picture = distributions.figure("t", "ms", {"<a>": list(range(1, 201))})
        self.assertIn("&lt;a&gt;: 200 values, p50 100 ms, p99 198 ms, longest 200 ms.", picture)


class Page(unittest.TestCase):
    def test_it_has_each_result_and_each_plot(self):
        plot = {"title": "latency", "x": "threshold", "y": "ms", "lines": {"native": [[1, 2], [2, 3]]}, "x_doubles": True}
        text = results_page.page([record(plots=[plot, plot]), record(test_id="4.1", status="failed", notes="too late")], MACHINE)
        self.assertEqual(text.count("<svg"), 2)
        self.assertIn("3.4 latency", text)
        self.assertIn("too late", text)
        self.assertIn("1 passed, 1 failed", text)

    def test_it_has_each_latency_as_a_histogram_and_in_percentiles(self):
        text = results_page.page([record(latencies={"a task": {"alone": [1.0] * 98 + [2.0, 4.0], "native": list(range(1, 201))}})], MACHINE)
        self.assertIn("<figcaption>3.4 a task: how often each latency occurred</figcaption>", text)
        self.assertIn("alone: 100 values, p50 1 ms, p99 4 ms, longest 4 ms. native: 200 values, p50 101 ms, p99 199 ms", text)
        root = xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])
        rows = [[cell.text for cell in row] for table in root.iter("table") for row in table.iter("tr")]
        self.assertIn(["case", "values", "0 %", "25 %", "50 %", "75 %", "90 %", "95 %", "99 %", "100 %"], rows)
        self.assertIn(["alone", "100", "1", "1", "1", "1", "1", "1", "4", "4"], rows)
        self.assertIn(["native", "200", "1", "51", "101", "151", "181", "191", "199", "200"], rows)

    def test_text_of_programs_is_not_taken_for_html(self):
        text = results_page.page([record(status="failed", notes="<script>alert(1)</script>")], MACHINE)
        self.assertNotIn("<script", text)
        self.assertIn("&lt;a device&gt;", text)


if __name__ == "__main__":
    unittest.main()
