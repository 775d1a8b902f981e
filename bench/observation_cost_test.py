#!/usr/bin/env python3
"""Tests of observation_cost.py, without programs; and, with FOLDER, one of it as a whole.  observation_cost_test.py [FOLDER]"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import observation_cost as cost  # noqa: E402

FOLDER = sys.argv.pop(1) if len(sys.argv) > 1 else None


def rounds_with(history=1.0, metrics=1.0, recording=1.0):
    """Rates of a machine that is slower in each round, with so much cost of each."""
    rounds = []
    for number in range(24):
        base = 1000 - 10 * number
        noise = 1 + (number % 5 - 2) / 1000
        rounds.append({"without history": base, "history": base / history * noise, "metrics": base / history / metrics * noise,
                       "recording": base / history / recording * noise})
    return rounds


class ObservationCost(unittest.TestCase):
    def test_each_case_is_at_each_place_as_often(self):
        places = collections.Counter((place, case) for number in range(8) for place, case in enumerate(cost.order_of(number)))
        self.assertEqual(set(places.values()), {2})
        self.assertEqual(len(places), 16)

    def test_a_cost_is_found_although_the_machine_becomes_slower(self):
        summary = cost.summary_of(rounds_with(history=1.02, recording=1.05))
        self.assertAlmostEqual(summary["history"]["median"], 1.02, 2)
        self.assertGreater(summary["history"]["low"], 1.01)
        self.assertAlmostEqual(summary["recording"]["median"], 1.05, 2)
        self.assertAlmostEqual(summary["metrics"]["median"], 1, 2)

    def test_the_interval_contains_the_median_and_is_within_the_values(self):
        values = [1 + number / 100 for number in range(20)]
        low, high = cost.interval_of(values)
        self.assertTrue(values[0] < low < 1.095 < high < values[-1], (low, high))

    def test_the_rate_is_the_last_one_that_was_printed(self):
        self.assertEqual(cost.rate_in("warming up: 3 /s\n12 steps, 41.5 tokens/s\n", cost.RATE), 41.5)
        self.assertEqual(cost.rate_in("requests 17\n", "requests ([0-9]+)"), 17)
        with self.assertRaises(SystemExit):
            cost.rate_in("nothing", cost.RATE)

    def test_cores_are_a_list_with_ranges(self):
        self.assertEqual(cost.cores_of("1,4-6"), {1, 4, 5, 6})

    @unittest.skipIf(FOLDER is None, "no folder with programs")
    def test_all_cases_are_measured_with_real_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "costs.json"
            subprocess.run([sys.executable, "-B", str(HERE / "observation_cost.py"), "--bin", FOLDER, "--rounds", "1", "--json", str(file), "--rate",
                            "requests ([0-9]+)", "--command", f"{FOLDER}/soft_client", "1", "requests", "1"], check=True, timeout=100)
            result = json.loads(file.read_text())
        self.assertEqual(set(result["rounds"][0]), set(cost.CASES))
        self.assertEqual(set(result["costs"]), {"history", "metrics", "recording"})


unittest.main()
