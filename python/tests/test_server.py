"""Queues and hints as a real server has them, for streams of the stand-in driver."""
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

FOLDER = tempfile.TemporaryDirectory()
os.environ.update(XSCHED_SOCKET=f"{FOLDER.name}/socket", XSCHED_SCHEDULER="GLB", STANDIN_CUDA_DEVICES="2",
                  XSCHED_AUTO_XQUEUE_PRIORITY="5", XSCHED_AUTO_XQUEUE_LAXITY="5000")

import xsched  # noqa: E402 (it reads the environment)
from xsched.programs import INSTALLED, find  # noqa: E402
from xsched.queue import own_queues  # noqa: E402

CUDA = ctypes.CDLL(os.environ["XSCHED_TEST_CUDA"])
LONGEST_S = 20


def wait_for(found, wanted):
    """The server hears of a hint a moment later."""
    end = time.monotonic() + LONGEST_S
    while found() != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return found()


class Server(unittest.TestCase):
    @classmethod
    def start_server(cls):
        ready, theirs = os.pipe()
        cls.server = subprocess.Popen([find("xserver"), "--user", "--socket", os.environ["XSCHED_SOCKET"],
                                       "--ready-fd", str(theirs)], pass_fds=[theirs], stderr=subprocess.DEVNULL)
        os.close(theirs)
        assert os.read(ready, 1), "the server has not started"
        os.close(ready)

    @classmethod
    def stop_server(cls):
        cls.server.terminate()
        cls.server.wait()

    @classmethod
    def setUpClass(cls):
        cls.start_server()
        device, context = ctypes.c_int(), ctypes.c_void_p()
        assert CUDA.cuInit(0) == 0
        assert CUDA.cuDeviceGet(ctypes.byref(device), 0) == 0
        assert CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert CUDA.cuCtxSetCurrent(context) == 0

    @classmethod
    def tearDownClass(cls):
        cls.stop_server()

    @contextlib.contextmanager
    def stream(self):
        stream = ctypes.c_void_p()
        self.assertEqual(CUDA.cuStreamCreate(ctypes.byref(stream), 1), 0)
        yield stream
        self.assertEqual(CUDA.cuStreamDestroy_v2(stream), 0)

    def priorities(self):
        return [queue.priority for queue in xsched.queues(os.getpid())]

    def test_the_queues_of_a_process_are_listed(self):
        with self.stream() as stream, xsched.XSchedQueue(stream, 5):
            self.assertEqual(wait_for(self.priorities, [5]), [5])
            queue = xsched.queues(os.getpid())[0]
            self.assertEqual((queue.pid, queue.state, queue.why, queue.waits_for), (os.getpid(), "idle", "", None))
            self.assertIn(queue, xsched.queues())
            with self.assertRaises(dataclasses.FrozenInstanceError):
                queue.priority = 6
        self.assertEqual(wait_for(self.priorities, []), [])

    def test_hints_reach_the_queues_of_a_process_or_one_queue(self):
        with self.stream() as first, self.stream() as second, xsched.XSchedQueue(first, 0), xsched.XSchedQueue(second, 0):
            self.assertEqual(wait_for(self.priorities, [0, 0]), [0, 0])
            xsched.hint(os.getpid(), priority=9)
            self.assertEqual(self.priorities(), [9, 9])
            xsched.hint(queue=xsched.queues(os.getpid())[1].queue, priority=-2, weight=300)
            self.assertEqual([(queue.priority, queue.weight) for queue in xsched.queues(os.getpid())], [(9, 100), (-2, 300)])

    def test_what_a_queue_had_can_be_set_again(self):
        names = ("priority", "utilization", "weight", "deadline_us", "laxity_us", "guarantee_us", "period_us", "limit_us", "burst_us",
                 "latency_target_us", "floor")

        def present():
            queue = xsched.queues(os.getpid())[0]
            return {name: getattr(queue, name) for name in names}

        with self.stream() as stream, xsched.XSchedQueue(stream, 3) as queue:
            queue.set_laxity(-1, 0, 0)
            queue.priority = 4  # the server learns of hints in their order
            self.assertEqual(wait_for(self.priorities, [4]), [4])
            before = present()
            self.assertEqual((before["deadline_us"], before["laxity_us"], before["period_us"]), (-1, -1, 0))
            other = {"deadline_us": 9000, "laxity_us": 8000, "guarantee_us": 1000, "period_us": 20_000}
            xsched.hint(os.getpid(), **other)
            self.assertEqual(present(), {**before, **other})
            xsched.hint(os.getpid(), **before)
            self.assertEqual(present(), before)
            xsched.hint(os.getpid(), **other)
            xsched.hint(os.getpid(), deadline_us=0, laxity_us=0, period_us=0)
            self.assertEqual(present(), before)
            self.assert_refused(xsched.Result.ERROR_INVALID_VALUE, lambda: xsched.hint(os.getpid(), guarantee_us=1000, period_us=0))

    def test_a_stream_of_another_device_than_the_current_one_has_its_queue_there(self):
        current, other, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual(CUDA.cuCtxGetCurrent(ctypes.byref(current)), 0)
        self.assertEqual(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(other), 1), 0)
        self.assertEqual(CUDA.cuCtxSetCurrent(other), 0)
        self.assertEqual(CUDA.cuStreamCreate(ctypes.byref(stream), 1), 0)
        with xsched.XSchedQueue(None, 1):
            self.assertEqual(CUDA.cuCtxSetCurrent(current), 0)
            with xsched.XSchedQueue(stream, 2), xsched.XSchedQueue(None, 3):
                self.assertEqual(wait_for(lambda: sorted(self.priorities()), [1, 2, 3]), [1, 2, 3])
                listed = json.loads(xsched.server._run("list", "--json", "--pid", str(os.getpid())))
                device = {queue["priority"]: queue["device_id"] for queue in listed}
        self.assertEqual(device[1], device[2])
        self.assertNotEqual(device[2], device[3])

    def test_jax_sets_hints_of_all_queues_without_a_server_and_whatever_the_pid_is(self):
        with self.stream() as first, self.stream() as second, xsched.XSchedQueue(first, 1), xsched.XSchedQueue(second, 2):
            with mock.patch.dict(os.environ, XSCHED_SOCKET="/nowhere/socket"), mock.patch("os.getpid", lambda: 1):
                xsched.jax.hint(priority=7, deadline=9000)
                with self.assertRaises(xsched.RangeError):
                    xsched.jax.hint(priority=9999)
            self.assertEqual(wait_for(self.priorities, [7, 7]), [7, 7])

    def test_a_block_has_its_priority_at_the_server(self):
        with self.stream() as stream, xsched.XSchedQueue(stream, 3):
            with xsched.priority(10, stream=stream):
                self.assertEqual(wait_for(self.priorities, [10]), [10])
            self.assertEqual(wait_for(self.priorities, [3]), [3])

    def test_a_block_gives_back_what_the_environment_says(self):
        laxity = [ctypes.c_int64(), ctypes.c_int32(), ctypes.c_int32()]

        def present(queue):
            self.assertEqual(xsched.library("preempt").XHintGetLaxity(queue, *map(ctypes.byref, laxity)), 0)
            return tuple(value.value for value in laxity)

        with self.stream() as stream, xsched.XSchedQueue(stream) as queue:
            with xsched.hints(stream=stream, laxity=(100, 0, 9)):
                self.assertEqual(own_queues(), [queue.handle])
                self.assertEqual(present(queue.handle), (100, 0, 9))
            self.assertEqual(present(queue.handle), (5000, 0, 5))
            self.assertEqual(wait_for(self.priorities, [5]), [5])

    def test_a_block_gives_back_what_others_have_set(self):
        priority = ctypes.c_int32()

        def present():
            self.assertEqual(xsched.library("preempt").XHintGetPriority(queue.handle, ctypes.byref(priority)), 0)
            return priority.value

        with self.stream() as stream, xsched.XSchedQueue(stream, 3) as queue:
            self.assertEqual(wait_for(self.priorities, [3]), [3])
            xsched.hint(os.getpid(), priority=7)
            self.assertEqual(wait_for(present, 7), 7)
            with xsched.priority(10, stream=stream):
                self.assertEqual(wait_for(self.priorities, [10]), [10])
            self.assertEqual(wait_for(self.priorities, [7]), [7])

    def test_the_reservations_that_python_refuses_are_those_that_the_library_ignores(self):
        def reservation():
            queue = xsched.queues(os.getpid())[0]
            return queue.guarantee_us, queue.period_us, queue.limit_us, queue.burst_us

        with self.stream() as stream, xsched.XSchedQueue(stream, 0) as queue:
            self.assertEqual(wait_for(self.priorities, [0]), [0])
            for values in ((1000, 1000, 0, 0), (0, 1000, 100, 100), (1000, 1_000_000, 1000, 0), (0, 0, 0, 0)):
                queue.set_reservation(*values)
                self.assertEqual(wait_for(reservation, values), values)
            refused = ((1, 999, 0, 0), (1, 1_000_001, 0, 0), (0, 1000, 0, 0), (1001, 1000, 0, 0), (0, 1000, 1001, 0), (0, 1000, 99, 0),
                       (500, 1000, 400, 0), (0, 1000, 100, 101), (500, 1000, 0, 1))
            for number, values in enumerate(refused, 1):
                with self.subTest(values):
                    with self.assertRaises(xsched.RangeError):
                        queue.set_reservation(*values)
                    xsched.library("preempt").XHintReservation(queue.handle, *values)
                    queue.priority = number  # the server learns of hints in their order
                    self.assertEqual(wait_for(self.priorities, [number]), [number])
                    self.assertEqual(reservation(), (0, 0, 0, 0))

    def test_a_block_for_a_whole_process(self):
        with self.stream() as first, self.stream() as second, xsched.XSchedQueue(first, 1), xsched.XSchedQueue(second, 2):
            self.assertEqual(wait_for(self.priorities, [1, 2]), [1, 2])
            with xsched.jax.hints(priority=10):
                self.assertEqual(wait_for(self.priorities, [10, 10]), [10, 10])
            self.assertEqual(wait_for(self.priorities, [1, 2]), [1, 2])

    def test_blocks_for_a_whole_process_may_overlap(self):
        first_ends, second_ends = threading.Event(), threading.Event()

        def enter(priority, end):
            with xsched.jax.hints(priority=priority):
                end.wait()

        with self.stream() as stream, xsched.XSchedQueue(stream, 1):
            self.assertEqual(wait_for(self.priorities, [1]), [1])
            first = threading.Thread(target=enter, args=(10, first_ends))
            second = threading.Thread(target=enter, args=(20, second_ends))
            first.start()
            self.assertEqual(wait_for(self.priorities, [10]), [10])
            second.start()
            self.assertEqual(wait_for(self.priorities, [20]), [20])
            with self.stream() as other, xsched.XSchedQueue(other, 2):
                self.assertEqual(wait_for(self.priorities, [20, 2]), [20, 2])
                with xsched.jax.hints(priority=30):
                    self.assertEqual(wait_for(self.priorities, [30, 30]), [30, 30])
                self.assertEqual(wait_for(self.priorities, [20, 2]), [20, 2])
            first_ends.set()
            first.join()
            self.assertEqual(wait_for(self.priorities, [20]), [20])
            second_ends.set()
            second.join()
            self.assertEqual(wait_for(self.priorities, [1]), [1])

    def test_a_queue_may_go_in_a_block_for_a_whole_process(self):
        with self.stream() as first, xsched.XSchedQueue(first, 1):
            with self.stream() as second, xsched.XSchedQueue(second, 2) as queue:
                self.assertEqual(wait_for(self.priorities, [1, 2]), [1, 2])
                with xsched.jax.hints(priority=10):
                    queue.close()
                    self.assertEqual(wait_for(self.priorities, [10]), [10])
                self.assertEqual(wait_for(self.priorities, [1]), [1])

    def test_a_block_for_a_whole_process_may_outlive_the_server(self):
        with self.stream() as first, self.stream() as second, xsched.XSchedQueue(first, 1), xsched.XSchedQueue(second, 2):
            self.assertEqual(wait_for(self.priorities, [1, 2]), [1, 2])
            with xsched.jax.hints(priority=10):
                self.assertEqual(wait_for(self.priorities, [10, 10]), [10, 10])
                self.stop_server()
            self.start_server()
            self.assertEqual(wait_for(lambda: sorted(self.priorities()), [1, 2]), [1, 2])

    def test_a_block_for_a_whole_process_needs_no_server(self):
        with self.stream() as stream, xsched.XSchedQueue(stream, 1), mock.patch.dict(os.environ, XSCHED_SOCKET="/nowhere/socket"):
            with xsched.jax.hints(priority=10, weight=300):
                pass

    def test_a_queue_that_has_another_number_at_a_new_server_has_its_own_priority_again(self):
        with self.stream() as first, self.stream() as second, xsched.XSchedQueue(first, 1) as going, xsched.XSchedQueue(second, 2):
            self.assertEqual(wait_for(self.priorities, [1, 2]), [1, 2])
            with xsched.jax.hints(priority=10):
                self.assertEqual(wait_for(self.priorities, [10, 10]), [10, 10])
                going.close()
                self.stop_server()
                self.start_server()
                self.assertEqual(wait_for(self.priorities, [10]), [10], "it has the number that the first one had")
            self.assertEqual(wait_for(self.priorities, [2]), [2])

    def test_a_block_for_a_whole_process_checks_its_hint(self):
        with self.assertRaises(ValueError), xsched.jax.hints(priority=9999):
            self.fail("the block does not begin")

    def assert_refused(self, result, act):
        with self.assertRaises(xsched.ServerError) as refused:
            act()
        self.assertEqual(refused.exception.result, result, str(refused.exception))
        self.assertTrue(str(refused.exception))

    def test_what_is_refused_is_an_error_that_says_why(self):
        with self.stream() as stream, xsched.XSchedQueue(stream, 0):
            self.assertEqual(wait_for(self.priorities, [0]), [0])
            self.assert_refused(xsched.Result.ERROR_INVALID_VALUE, lambda: xsched.hint(os.getpid(), priority=300))
        self.assert_refused(xsched.Result.ERROR_UNKNOWN, lambda: xsched.hint(1, priority=3))
        for wrong in ({}, {"pid": 1}, {"pid": 1, "queue": 2, "priority": 3}, {"priority": 3}):
            with self.assertRaises(ValueError):
                xsched.hint(**wrong)

    def test_without_a_server_the_error_says_so(self):
        with mock.patch.dict(os.environ, XSCHED_SOCKET="/nowhere/socket"):
            self.assert_refused(xsched.Result.ERROR_NOT_FOUND, xsched.queues)

    def test_the_servers_texts_are_read_whatever_the_locale_is(self):
        program = "import sys, xsched\ntry: xsched.queues()\nexcept xsched.ServerError as error: sys.exit(error.result != xsched.Result.ERROR_NOT_FOUND)"
        environment = {**os.environb, b"LC_ALL": b"C", b"PYTHONCOERCECLOCALE": b"0", b"XSCHED_SOCKET": "/nowhere/größe".encode()}
        done = subprocess.run([sys.executable, "-B", "-X", "utf8=0", "-c", program], env=environment, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_program_of_another_version_or_that_cannot_be_run_is_an_error_of_this_package(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        older, no_program = folder / "older", folder / "no_program"
        older.write_text("""#!/bin/sh\necho '[{"queue": 1, "pid": 2}]'\n""")
        older.chmod(0o755)
        no_program.touch()
        for program, result in ((older, xsched.Result.ERROR_BAD_RESPONSE), (no_program, xsched.Result.ERROR_UNKNOWN)):
            with mock.patch("xsched.server.find", lambda name, program=program: str(program)):
                self.assert_refused(result, xsched.queues)

    def test_a_queue_says_what_its_process_is_in_if_the_program_xsched_knows_it(self):
        known = {field.name: 0 for field in dataclasses.fields(xsched.QueueInfo) if field.default is dataclasses.MISSING}
        program = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "xsched"
        listed = json.dumps([known, {**known, "container": "1f3a", "pod": None, "job": "1234"}])
        program.write_text(f"#!/bin/sh\necho '{listed}'\n")
        program.chmod(0o755)
        with mock.patch("xsched.server.find", lambda name: str(program)):
            found = [(queue.container, queue.pod, queue.job) for queue in xsched.queues()]
        self.assertEqual(found, [(None, None, None), ("1f3a", None, "1234")])

    @unittest.skipIf(INSTALLED.exists(), "a wheel has its own")
    def test_without_the_program_the_error_says_so(self):
        with mock.patch.dict(os.environ, PATH="", XSCHED_LIBRARY_DIR="/nowhere/lib"), mock.patch("sys.prefix", "/nowhere"):
            self.assert_refused(xsched.Result.ERROR_NOT_FOUND, xsched.queues)


if __name__ == "__main__":
    unittest.main()
