#!/usr/bin/env python3
"""Tests of the simulated site, with few nodes and the real simulator of one GPU.  savings_test.py XSCHED"""
import dataclasses
import pathlib
import sys
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import placement  # noqa: E402
import plot  # noqa: E402
import programs  # noqa: E402
import savings  # noqa: E402
from assumptions import Assumptions  # noqa: E402
from shared_gpu import TIME_SLICING, XSCHED, Outcome, SharedGpu  # noqa: E402

XSCHED_PROGRAM = sys.argv.pop(1)
SMALL = Assumptions(nodes=10, seconds=10, targets=(1.25, 3))


def placed(mixes):
    """How many programs of each kind are on the GPUs."""
    count = {}
    for mix, gpus in mixes.items():
        for kind in mix:
            count[kind] = count.get(kind, 0) + gpus
    return count


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gpu = SharedGpu(XSCHED_PROGRAM, SMALL)
        cls.site = savings.Site(SMALL, cls.gpu)

    def test_each_program_is_placed_once(self):
        for policy in savings.NAMES:
            self.assertEqual(placed(self.site.place(policy, 1.25)), dict(self.site.programs))
        self.assertEqual(placed(self.site.place_unseen()), dict(self.site.programs))

    def test_no_gpu_has_more_than_its_memory_or_a_slower_program_than_allowed(self):
        for policy in savings.NAMES:
            for mix in self.site.place(policy, 1.25):
                self.assertLessEqual(sum(kind.memory for kind in mix), 1 + 1e-9)
                if len(mix) > 1:
                    self.assertTrue(self.gpu.outcome(mix, policy).is_fine(1.25, SMALL.job_slowdown))

    def test_sharing_never_needs_more_gpus_than_whole_ones_and_some_fewer(self):
        for row in savings.by_target(self.site):
            for policy in savings.NAMES:
                self.assertLessEqual(row[policy], row["whole"])
            self.assertLess(row[XSCHED], row["whole"])
            self.assertLessEqual(row[XSCHED], row[TIME_SLICING])

    def test_with_the_same_placement_services_are_faster_with_xsched(self):
        result = savings.unseen(self.site)
        self.assertLess(result[XSCHED]["p50"], result[TIME_SLICING]["p50"])

    def test_the_same_seed_has_the_same_result_and_another_seed_other_programs(self):
        again = savings.Site(SMALL, SharedGpu(XSCHED_PROGRAM, SMALL))
        self.assertEqual(again.programs, self.site.programs)
        self.assertEqual(again.place(XSCHED, 1.25), self.site.place(XSCHED, 1.25))
        self.assertNotEqual(programs.draw(dataclasses.replace(SMALL, seed=2)), self.site.programs)

    def test_a_mix_is_simulated_once(self):
        mix = tuple(sorted(self.site.programs))[:2]
        self.gpu.outcome(mix, XSCHED)
        simulated = self.gpu.simulated
        self.gpu.outcome(tuple(reversed(mix)), TIME_SLICING)
        self.assertEqual(self.gpu.simulated, simulated)


class Drawing(unittest.TestCase):
    def test_what_is_drawn_has_the_statistics_of_the_traces(self):
        points = Assumptions.utilization
        self.assertEqual(programs.quantile(points, 0.2), 0)
        self.assertAlmostEqual(programs.quantile(points, 0.5), 0.015)
        mean = sum(programs.quantile(points, (i + 0.5) / 10_000) for i in range(10_000)) / 10_000
        self.assertAlmostEqual(mean, 0.105, delta=0.01)

    def test_there_is_a_program_for_each_gpu_that_may_be_shared(self):
        assumed = Assumptions(nodes=100, unshared=0.25)
        self.assertEqual(sum(programs.draw(assumed).values()), 600)


class Placement(unittest.TestCase):
    SERVICE = programs.Kind(0.1, 0.25, 5, 200_000)

    def test_where_no_two_programs_agree_each_has_a_gpu(self):
        mixes = placement.place({self.SERVICE: 7}, Assumptions(), lambda mix: False)
        self.assertEqual(mixes, placement.whole({self.SERVICE: 7}))

    def test_where_all_agree_memory_is_the_limit(self):
        mixes = placement.place({self.SERVICE: 7}, Assumptions(), lambda mix: True)
        self.assertEqual(mixes, {(self.SERVICE,) * 4: 1, (self.SERVICE,) * 3: 1})

    def test_one_slow_service_or_one_slow_job_is_not_fine(self):
        self.assertTrue(Outcome((1.2,), (0.95,)).is_fine(1.25, 0.1))
        self.assertFalse(Outcome((1.2, 1.3), (0.95,)).is_fine(1.25, 0.1))
        self.assertFalse(Outcome((1.2,), (0.85,)).is_fine(1.25, 0.1))


class Plot(unittest.TestCase):
    def test_it_is_svg_with_a_line_for_each_way(self):
        rows = [{"target": 1.5, "whole": 8, TIME_SLICING: 8, XSCHED: 4}, {"target": 3, "whole": 8, TIME_SLICING: 5, XSCHED: 4}]
        picture = xml.dom.minidom.parseString(plot.savings(rows, {**savings.NAMES, "whole": "whole GPUs"}))
        self.assertEqual(len(picture.getElementsByTagName("polyline")), 3)


if __name__ == "__main__":
    unittest.main()
