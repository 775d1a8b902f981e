#!/usr/bin/env python3
"""Tests of observation_cost.py, without programs; and, with FOLDER, one of it as a whole.  observation_cost_test.py [FOLDER]"""
import collections
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

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


def recorded(*queues_with_bursts):
    """The lines of a recording of queues with these priorities, with a burst of each."""
    lines = [{"t": 0, "queue": {"id": number, "hints": {"priority": priority}}} for number, priority in enumerate(queues_with_bursts)]
    lines += [{"t": 5, "burst": {"queue": number}} for number in range(len(queues_with_bursts))]
    return [json.dumps(line) for line in lines]


@contextlib.contextmanager
def answering(answer):
    """The path of a Unix socket where the first request gets this answer; None: it gets none, and the connection stays open."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = f"{folder}/socket"
        listener.bind(path)
        listener.listen()
        ends = threading.Event()

        def serve():
            with listener.accept()[0] as connection:
                connection.recv(1 << 16)
                if answer is None:
                    ends.wait()
                else:
                    connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        try:
            yield path
        finally:
            ends.set()
            server.join()


@contextlib.contextmanager
def bench_of(script):
    """With servers. The program is this shell script: $PROGRAM runs on a device, and $PRIORITY is the one that it was given."""
    script = f"PROGRAM={FOLDER}/soft_client; PRIORITY=$XSCHED_AUTO_XQUEUE_PRIORITY; {script}"
    options = cost.options_of(["--bin", FOLDER, "--rate", "requests ([0-9]+)", "--command", "sh", "-c", script])
    with tempfile.TemporaryDirectory() as folder:
        bench = cost.Bench(options, folder)
        with bench.servers():
            yield bench


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

    def test_only_bursts_of_the_measured_program_count(self):
        self.assertEqual(cost.bursts_of_measured(recorded(cost.BESIDE, cost.MEASURED, cost.MEASURED)), 2)
        self.assertEqual(cost.bursts_of_measured(recorded(cost.BESIDE)), 0)

    def test_only_a_page_with_queues_of_the_measured_program_counts(self):
        self.assertTrue(cost.has_measured('# page\nxsched_process_queues{client="3",priority="1",device="0",state="busy"} 1\n'))
        self.assertFalse(cost.has_measured('xsched_process_queues{client="3",priority="0",device="0"} 1\n'))
        self.assertFalse(cost.has_measured('xsched_process_queues{priority="10"} 1\nxsched_user_queues{priority="1"} 1\n'))

    def test_a_reading_with_another_status_than_200_fails_the_measurement(self):
        with answering(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n") as path, self.assertRaisesRegex(Exception, "status 503"):
            with cost.reading(path) as pages:
                pass
            pages.result()

    def test_a_reading_without_an_answer_fails_in_time(self):
        with unittest.mock.patch.object(cost, "PATIENCE", 0.1), answering(None) as path, self.assertRaises(TimeoutError):
            cost.page_at(path)

    def test_the_default_program_beside_it_runs_for_longer_than_a_measurement_may_take(self):
        with tempfile.TemporaryDirectory() as folder:
            task = pathlib.Path(folder) / "xsched-latency-task"
            task.write_text("#!/bin/sh\necho 100\n")
            task.chmod(0o700)
            bench = cost.Bench(cost.options_of(["--bin", folder, "--seconds", "7"]), folder)
        seconds = [float(command[command.index("--seconds") + 1]) for command in (bench.measured, bench.beside)]
        self.assertEqual(seconds[0], 7)
        self.assertGreater(seconds[1], 7 + 10 * cost.PATIENCE)

    @unittest.skipIf(FOLDER is None, "no folder with programs")
    def test_a_case_that_does_not_observe_the_measured_program_fails(self):
        with bench_of("[ $PRIORITY = 0 ] || export XSCHED_SCHEDULER=APP; exec $PROGRAM $PRIORITY requests 2") as bench:
            for case, message in (("metrics", "no page"), ("recording", "nothing was recorded")):
                with self.subTest(case), self.assertRaisesRegex(SystemExit, message):
                    bench.measure(case)

    @unittest.skipIf(FOLDER is None, "no folder with programs")
    def test_a_measurement_fails_if_the_program_beside_it_does(self):
        with tempfile.NamedTemporaryFile() as file:
            beside = f"echo $$ > {file.name}; exec $PROGRAM 0 requests 100"
            measured = f"kill $(cat {file.name}); exec $PROGRAM 1 requests 1"
            with bench_of(f"if [ $PRIORITY = 0 ]; then {beside}; else {measured}; fi") as bench, \
                 self.assertRaisesRegex(SystemExit, "ended with 0 before"):
                bench.measure("history")

    @unittest.skipIf(FOLDER is None, "no folder with programs")
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_only_servers_run_on_the_cores_of_the_servers(self):
        all_cores = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, all_cores)
        woken = []

        @contextlib.contextmanager
        def awake_cores():
            woken.append(os.sched_getaffinity(0))
            yield

        with tempfile.NamedTemporaryFile("r") as file, unittest.mock.patch.object(cost, "awake_cores", awake_cores):
            script = f"nproc >> {file.name}; exec {FOLDER}/soft_client $XSCHED_AUTO_XQUEUE_PRIORITY requests 2"
            cost.measured_rounds(cost.options_of(["--bin", FOLDER, "--rounds", "1", "--server-cores", str(min(all_cores)), "--keep-awake",
                                                  "--rate", "requests ([0-9]+)", "--command", "sh", "-c", script]))
            self.assertEqual(set(file.read().split()), {str(len(all_cores))})
        self.assertEqual(woken, [all_cores])

    @unittest.skipIf(FOLDER is None, "no folder with programs")
    def test_all_cases_are_measured_with_real_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "costs.json"
            subprocess.run([sys.executable, "-B", str(HERE / "observation_cost.py"), "--bin", FOLDER, "--rounds", "1", "--json", str(file),
                            "--rate", "requests ([0-9]+)", "--command", "sh", "-c",
                            f"exec {FOLDER}/soft_client $XSCHED_AUTO_XQUEUE_PRIORITY requests 2"], check=True, timeout=100)
            result = json.loads(file.read_text())
        self.assertEqual(set(result["rounds"][0]), set(cost.CASES))
        self.assertEqual(set(result["costs"]), {"history", "metrics", "recording"})


unittest.main()
