"""XSchedQueue over HIP streams, of the fake runtime in two instances."""
import concurrent.futures
import contextlib
import ctypes
import gc
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock
import weakref

import fake_hip
import xsched
from xsched.queue import call as call_library, own_queues

INSTANCES = [fake_hip.Instance("XSCHED_TEST_HIP_A"), fake_hip.Instance("XSCHED_TEST_HIP_B")]


class TorchStream:
    """As torch.cuda.Stream shows itself."""

    def __init__(self, address):
        self.cuda_stream = address


def default_stream_of_torch(device):
    """As torch.cuda.default_stream(device)."""
    of_torch = type("Stream", (), {"__module__": "torch.cuda.streams"})()
    of_torch.cuda_stream, of_torch.device = 0, types.SimpleNamespace(index=device)
    return of_torch


def default_stream_of_cupy(device):
    """As CuPy's null stream of this device; -1: of the current one."""
    of_cupy = type("Stream", (), {"__module__": "cupy.cuda.stream"})()
    of_cupy.ptr, of_cupy.device_id = 0, device
    return of_cupy


class Streams(unittest.TestCase):
    def test_a_stream_of_each_instance_has_a_queue(self):
        for instance in INSTANCES:
            with xsched.XSchedQueue(instance.stream(), priority=3) as queue:
                self.assertNotEqual(queue.handle, 0)
                self.assertEqual(queue.priority, 3)
                self.assertTrue(queue.idle)

    def test_a_stream_may_be_an_object_a_number_or_a_pointer(self):
        address = INSTANCES[0].stream().value
        pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_int))
        for stream in (address, ctypes.c_void_p(address), pointer, TorchStream(address)):
            with xsched.XSchedQueue(stream, 1) as queue:
                self.assertIs(queue.stream, stream)

    def test_a_queue_that_is_dropped_unclosed_keeps_its_stream(self):
        stream = TorchStream(INSTANCES[0].stream().value)
        kept = weakref.ref(stream)
        handle = xsched.XSchedQueue(stream).handle
        address = stream.cuda_stream
        del stream
        gc.collect()
        self.assertIsNotNone(kept())
        with xsched.XSchedQueue(address) as same:
            self.assertEqual(same.handle, handle)

    def test_a_closed_queue_keeps_no_stream(self):
        stream = TorchStream(INSTANCES[0].stream().value)
        gone = weakref.ref(stream)
        queue = xsched.XSchedQueue(stream)
        queue.close()
        del stream, queue
        gc.collect()
        self.assertIsNone(gone())

    def test_none_is_the_default_stream(self):
        with xsched.XSchedQueue(None, 1) as queue, xsched.XSchedQueue(0, 2) as same:
            self.assertEqual(queue.handle, same.handle)

    def test_the_default_stream_of_another_device_is_another_one(self):
        instance = INSTANCES[0]
        torch = types.SimpleNamespace(version=types.SimpleNamespace(cuda=None, hip="7.0"), cuda=types.SimpleNamespace(device=instance.on_device))
        runtime = types.SimpleNamespace(is_hip=True, getDevice=instance.device)
        cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(Device=instance.on_device, runtime=runtime))
        for stream_of in (default_stream_of_torch, default_stream_of_cupy):
            with self.subTest(stream_of.__name__), unittest.mock.patch.dict(sys.modules, {"torch": torch, "cupy": cupy}), \
                    xsched.XSchedQueue(stream_of(0), 1) as first, xsched.XSchedQueue(stream_of(1), 2) as second:
                self.assertNotEqual(first.handle, second.handle)
                with xsched.priority(10, stream=stream_of(1)):
                    self.assertEqual((first.priority, second.priority), (1, 10))
                for current in (None, default_stream_of_cupy(-1)):
                    with xsched.XSchedQueue(current, platform="hip") as same:
                        self.assertEqual(same.handle, first.handle)
            self.assertEqual(instance.device(), 0)

    def test_what_is_no_stream_is_refused(self):
        with self.assertRaises(xsched.XSchedError) as caught:
            xsched.XSchedQueue(ctypes.addressof(ctypes.c_int(0)), 1)
        self.assertEqual(caught.exception.result, xsched.Result.ERROR_INVALID_VALUE)
        self.assertEqual(str(caught.exception), "HipQueueCreate: invalid value")
        with self.assertRaises(TypeError):
            xsched.XSchedQueue("a stream", 1)

    def test_a_platform_that_is_not_known_is_refused(self):
        with self.assertRaises(ValueError):
            xsched.XSchedQueue(None, 1, platform="hpi")

    def test_a_priority_out_of_range_is_refused_and_leaves_no_queue(self):
        stream, before = INSTANCES[0].stream(), own_queues()
        with self.assertRaises(xsched.XSchedError):
            xsched.XSchedQueue(stream, 256)
        self.assertEqual(own_queues(), before)
        with xsched.XSchedQueue(stream, 255) as queue:
            with self.assertRaises(xsched.XSchedError):
                queue.priority = -257
            self.assertEqual(queue.priority, 255)

    def test_a_value_out_of_range_is_refused(self):
        with xsched.XSchedQueue(INSTANCES[0].stream()) as queue:
            for change, values in ((queue.set_utilization, (101,)), (queue.set_weight, (0,)), (queue.set_weight, (2**32 + 50,)),
                                   (queue.set_reservation, (5000, 1000)), (queue.set_latency_target, (-5,)), (queue.set_floor, (100,)),
                                   (queue.set_deadline, (-2,)), (queue.set_laxity, (1000, 0, 256)), (queue.set_launch_config, (10**30,)),
                                   (queue.set_launch_config, (0,)), (queue.set_level, (2**32 + 1,)), (queue.set_weight, (1.5,)),
                                   (xsched.set_timeslice, (5,)), (xsched.set_timeslice, (-1,)), (xsched.set_k_deadline, (0,)),
                                   (xsched.set_k_deadline, (65,)), (xsched.set_k_deadline, (-1,))):
                with self.subTest(change.__name__, values=values), self.assertRaises(ValueError):
                    change(*values)

    def test_for_a_level_that_hip_does_not_have_it_gets_the_best_below(self):
        with xsched.XSchedQueue(INSTANCES[0].stream(), 1, level=xsched.PreemptLevel.INTERRUPT) as queue:
            queue.set_level(xsched.PreemptLevel.DEACTIVATE)
            self.assertTrue(queue.idle)

    def test_a_closed_queue_says_so(self):
        queue = xsched.XSchedQueue(INSTANCES[0].stream(), 1)
        queue.close()
        queue.close()
        self.assertIn("closed", repr(queue))
        with self.assertRaises(xsched.XSchedError):
            queue.suspend()

    def test_a_queue_that_is_gone_already_can_be_closed(self):
        stream = TorchStream(INSTANCES[0].stream().value)
        released = weakref.ref(stream)
        with xsched.XSchedQueue(stream) as queue:
            call_library("preempt", "XQueueDestroy", queue.handle)
        del stream, queue
        gc.collect()
        self.assertIsNone(released())

    def test_a_queue_whose_close_failed_can_be_closed_again(self):
        stream = TorchStream(INSTANCES[0].stream().value)
        queue = xsched.XSchedQueue(stream)
        failures = [xsched.Result.ERROR_NOT_ALLOWED]

        def call(library, function, *arguments):
            if function == "HwQueueDestroy" and failures:
                raise xsched.XSchedError(function, failures.pop())
            call_library(library, function, *arguments)

        with unittest.mock.patch("xsched.queue.call", call):
            with self.assertRaises(xsched.XSchedError):
                queue.close()
            queue.close()
        released = weakref.ref(stream)
        del stream, queue
        gc.collect()
        self.assertIsNone(released())

    def test_two_threads_that_close_a_queue_destroy_it_once(self):
        queue = xsched.XSchedQueue(INSTANCES[0].stream(), 1)
        destroyed = []
        begun, both_asked = threading.Event(), threading.Event()

        def call(library, function, *arguments):
            if function == "XQueueDestroy":
                destroyed.append(arguments)
                begun.set()
                both_asked.wait(10)
            call_library(library, function, *arguments)

        with unittest.mock.patch("xsched.queue.call", call):
            first = threading.Thread(target=queue.close)
            first.start()
            self.assertTrue(begun.wait(10))
            second = threading.Thread(target=queue.close)
            second.start()
            second.join(1)  # it does not wait for the first
            both_asked.set()
            first.join()
            second.join()
        self.assertEqual(len(destroyed), 1)
        self.assertEqual(queue.handle, 0)

    @contextlib.contextmanager
    def closing_stopped_at(self, function, queue):
        """In the block, another thread has called queue.close(), which is about to call this function of the C library. At the end, the function
        is called, and close() must return without an error."""
        reached, go_on = threading.Event(), threading.Event()

        def call(library, name, *arguments):
            if name == function and not reached.is_set():
                reached.set()
                go_on.wait(10)
            call_library(library, name, *arguments)

        with unittest.mock.patch("xsched.queue.call", call), concurrent.futures.ThreadPoolExecutor(1) as pool:
            closed = pool.submit(queue.close)
            try:
                self.assertTrue(reached.wait(10))
                yield
            finally:
                go_on.set()
            closed.result(10)

    def test_a_queue_that_is_made_while_the_streams_last_one_is_closed_lives(self):
        before = own_queues()
        for function in ("XQueueDestroy", "HwQueueDestroy"):
            with self.subTest(function), concurrent.futures.ThreadPoolExecutor(1) as pool:
                stream = INSTANCES[0].stream()
                with self.closing_stopped_at(function, xsched.XSchedQueue(stream, 1)):
                    made = pool.submit(xsched.XSchedQueue, stream, 2)
                    concurrent.futures.wait([made], 0.1)
                with made.result(10) as queue:
                    self.assertEqual(queue.priority, 2)
                self.assertEqual(own_queues(), before)

    def test_a_queue_that_is_made_while_the_last_one_waits_for_a_function_lives(self):
        began, may_end = threading.Event(), threading.Event()
        stream = INSTANCES[0].stream()
        former = xsched.XSchedQueue(stream, 1)
        handle = former.handle
        former.submit(lambda: (began.set(), may_end.wait(10)))
        self.assertTrue(began.wait(10))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            closed = pool.submit(former.close)
            while handle in own_queues():
                time.sleep(0.001)
            made = pool.submit(xsched.XSchedQueue, stream, 2)
            concurrent.futures.wait([made], 0.1)
            may_end.set()
            closed.result(10)
            with made.result(10) as queue:
                self.assertEqual(queue.priority, 2)

    def test_a_block_that_begins_while_the_default_streams_last_queue_is_closed_does_not_disturb_it(self):
        def enter_and_leave():
            with xsched.priority(5, stream=0):
                pass

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with self.closing_stopped_at("HwQueueDestroy", xsched.XSchedQueue(0)):
                block = pool.submit(enter_and_leave)
                concurrent.futures.wait([block], 0.1)
            block.result(10)

    def test_a_function_that_makes_a_queue_over_its_own_stream_does_not_wait_for_ever_for_the_close(self):
        began, may_go_on, errors = threading.Event(), threading.Event(), []
        stream = INSTANCES[0].stream()

        def launch():
            began.set()
            may_go_on.wait(10)
            try:
                xsched.XSchedQueue(stream).close()
            except xsched.XSchedError as error:
                errors.append(error)

        queue = xsched.XSchedQueue(stream)
        handle = queue.handle
        queue.submit(launch)
        self.assertTrue(began.wait(10))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            closed = pool.submit(queue.close)
            while handle in own_queues():
                time.sleep(0.001)
            may_go_on.set()
            closed.result(5)
        self.assertEqual([error.result for error in errors], [xsched.Result.ERROR_NOT_ALLOWED])
        self.assertIn("is being closed", str(errors[0]))

    def test_a_stream_that_has_a_queue_keeps_it(self):
        stream = INSTANCES[1].stream()
        with xsched.XSchedQueue(stream, 1) as owner:
            with xsched.XSchedQueue(stream, 2) as guest:
                self.assertEqual(guest.handle, owner.handle)
            self.assertTrue(owner.idle)

    def test_the_last_queue_over_a_stream_destroys_it(self):
        before = own_queues()
        first = xsched.XSchedQueue(INSTANCES[1].stream(), 1)
        second = xsched.XSchedQueue(first.stream)
        first.close()
        self.assertEqual(second.priority, 1)
        second.close()
        self.assertEqual(own_queues(), before)

    def test_the_priority_is_what_the_queue_has_now(self):
        stream = INSTANCES[1].stream()
        with xsched.XSchedQueue(stream, 1) as queue, xsched.XSchedQueue(stream) as same:
            self.assertEqual(same.priority, 1, "none was given")
            same.priority = 7
            self.assertEqual(queue.priority, 7)
            with xsched.priority(9, stream=stream):
                self.assertIn("priority 9", repr(queue))
            call_library("preempt", "XQueueDestroy", queue.handle)
            self.assertIn("closed", repr(queue))

    def test_a_block_makes_no_queue_for_a_stream_whose_end_nobody_would_see(self):
        before = own_queues()
        for _ in range(1100):  # more than the queues that a process may have
            with xsched.priority(10, stream=INSTANCES[1].stream()):
                self.assertEqual(own_queues(), before)

    def test_hints_and_config_are_taken(self):
        with xsched.XSchedQueue(INSTANCES[0].stream(), 1, threshold=8, batch_size=2) as queue:
            queue.set_utilization(50)
            queue.set_weight(300)
            queue.set_reservation(2000, 10000, limit=5000)
            queue.set_latency_target(20000)
            queue.set_floor(10)
            queue.set_deadline(1000)
            queue.set_laxity(1000, 0, 5)
            queue.set_level(xsched.PreemptLevel.BLOCK)
            with self.assertRaises(xsched.RangeError):
                queue.set_launch_config(threshold=1, batch_size=2)

    def test_a_threshold_below_the_batch_size_makes_that_smaller(self):
        with xsched.XSchedQueue(INSTANCES[0].stream(), 1, threshold=4) as queue:
            queue.set_launch_config(batch_size=4)
            with self.assertRaises(xsched.XSchedError):
                queue.set_launch_config(batch_size=5)
            queue.set_launch_config(threshold=2)
            with self.assertRaises(xsched.XSchedError):
                queue.set_launch_config(batch_size=3)
            queue.set_launch_config(threshold=8)
            with self.assertRaises(xsched.XSchedError):
                queue.set_launch_config(threshold=3, batch_size=4)


class Submission(unittest.TestCase):
    def setUp(self):
        self.instance = INSTANCES[0]
        self.stream = self.instance.stream()

    def launch(self):
        self.instance.launch(self.stream)

    def wait_for(self, condition):
        deadline = time.monotonic() + 30
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.001)
        self.assertTrue(condition())

    def test_a_command_runs_and_is_waited_for(self):
        with xsched.XSchedQueue(self.stream, 1) as queue:
            command = queue.submit(self.launch)
            self.wait_for(lambda: self.instance.launched(self.stream) == 1)
            self.instance.finish(self.stream, 1)
            command.wait()
            queue.wait()
            self.assertEqual(queue.command_count, 1)
            self.assertTrue(queue.idle)

    def test_a_held_queue_keeps_what_is_submitted(self):
        with xsched.XSchedQueue(self.stream, 1) as queue:
            with queue.held(wait=True):
                queue.submit(self.launch)
                gc.collect()  # the queue alone holds the command
                time.sleep(0.02)
                self.assertEqual(self.instance.launched(self.stream), 0)
                self.assertFalse(queue.idle)
            self.wait_for(lambda: self.instance.launched(self.stream) == 1)
            self.instance.finish(self.stream, 1)
            queue.wait()

    def assert_held(self, queue):
        """What is submitted now is not launched, and is dropped."""
        before = self.instance.launched(self.stream)
        queue.submit(self.launch)
        time.sleep(0.02)
        self.assertEqual(self.instance.launched(self.stream), before)
        xsched.commands.drop(queue.handle)

    def assert_runs(self, queue):
        before = self.instance.launched(self.stream)
        queue.submit(self.launch)
        self.wait_for(lambda: self.instance.launched(self.stream) == before + 1)
        self.instance.finish(self.stream, 1)

    def test_blocks_that_hold_a_queue_nest(self):
        with xsched.XSchedQueue(self.stream, 1) as queue:
            with queue.held():
                with queue.held():
                    self.assert_held(queue)
                self.assert_held(queue)
            self.assert_runs(queue)

    def test_a_queue_is_held_until_the_last_of_several_threads_lets_it_go(self):
        begun, end = threading.Event(), threading.Event()

        def hold(queue):
            with queue.held():
                begun.set()
                end.wait()

        with xsched.XSchedQueue(self.stream, 1) as queue, xsched.XSchedQueue(self.stream) as same:
            thread = threading.Thread(target=hold, args=(same,))
            with queue.held():
                thread.start()
                begun.wait()
            self.assert_held(queue)
            end.set()
            thread.join()
            self.assert_runs(queue)

    def test_a_block_waits_for_what_is_in_flight_although_another_one_holds_the_queue(self):
        begun = threading.Event()

        def hold_and_wait(queue):
            with queue.held(wait=True):
                begun.set()

        with xsched.XSchedQueue(self.stream, 1) as queue, concurrent.futures.ThreadPoolExecutor(1) as pool:
            queue.submit(self.launch)
            self.wait_for(lambda: self.instance.launched(self.stream) == 1)
            with queue.held():
                ended = pool.submit(hold_and_wait, queue)
                try:
                    self.assertFalse(begun.wait(0.2), "the command has not finished")
                finally:
                    self.instance.finish(self.stream, 1)
                ended.result(10)
                self.assertTrue(begun.is_set())

    def test_a_queue_that_was_suspended_before_a_block_is_suspended_after_it(self):
        with xsched.XSchedQueue(self.stream, 1) as queue:
            queue.suspend()
            with queue.held():
                pass
            self.assert_held(queue)
            queue.resume()
            self.assert_runs(queue)
            with queue.held():
                queue.suspend()
            self.assert_held(queue)
            queue.resume()
            with queue.held():
                queue.resume()
                self.assert_runs(queue)

    def test_an_interrupted_block_holds_nothing(self):
        def interrupted(library, function, *arguments):
            call_library(library, function, *arguments)
            raise KeyboardInterrupt  # as Ctrl-C during the wait, when the C function returns

        with xsched.XSchedQueue(self.stream, 1) as queue:
            with unittest.mock.patch("xsched.holds._suspend", lambda handle, wait: interrupted("preempt", "XQueueSuspend", handle, wait)):
                with self.assertRaises(KeyboardInterrupt), queue.held(wait=True):
                    self.fail("the block does not begin")
            self.assert_runs(queue)

    def test_a_block_that_holds_a_queue_may_close_it(self):
        queue = xsched.XSchedQueue(self.stream, 1)
        with self.assertRaises(KeyError), queue.held():
            queue.close()
            raise KeyError
        self.assertEqual(xsched.holds._holds, {})

    def test_a_function_that_waits_for_its_own_queue_is_refused(self):
        refused = []

        def launch():
            for wait in (queue.wait, lambda: queue.suspend(wait=True), lambda: own.wait()):
                try:
                    wait()
                except xsched.XSchedError as error:
                    refused.append(error.result)
            queue.suspend()

        with xsched.XSchedQueue(self.stream, 1) as queue:
            with queue.held():
                own = queue.submit(launch)
            own.wait()
            self.assertEqual(refused, [xsched.Result.ERROR_NOT_ALLOWED] * 3)
            self.assert_held(queue)
            queue.resume()
            self.assert_runs(queue)

    def test_what_is_dropped_is_never_launched(self):
        with xsched.XSchedQueue(self.stream, 1) as queue:
            queue.suspend()
            command = queue.submit(self.launch)
            queue.resume(drop=True)
            with self.assertRaises(xsched.XSchedError) as caught:
                command.wait()
            self.assertEqual(caught.exception.result, xsched.Result.ERROR_NOT_FOUND)
            self.assertEqual(self.instance.launched(self.stream), 0)

    def test_what_waits_in_a_queue_that_is_not_suspended_is_dropped_as_well(self):
        began, may_end, launched = threading.Event(), threading.Event(), []
        with xsched.XSchedQueue(self.stream, 1) as queue:
            first = queue.submit(lambda: (began.set(), may_end.wait()))
            second = queue.submit(lambda: launched.append("second"))
            began.wait()
            queue.resume(drop=True)
            may_end.set()
            first.wait()
            with self.assertRaises(xsched.XSchedError) as caught:
                second.wait()
            self.assertEqual(caught.exception.result, xsched.Result.ERROR_NOT_FOUND)
            self.assertEqual(launched, [])

    def test_what_is_launched_or_dropped_is_not_kept(self):
        class Launch:
            def __call__(self):
                pass

        with xsched.XSchedQueue(self.stream, 1) as queue:
            launched, dropped = Launch(), Launch()
            gone = [weakref.ref(launched), weakref.ref(dropped)]
            queue.submit(launched).wait()
            queue.suspend()
            queue.submit(dropped)
            queue.resume(drop=True)
            del launched, dropped
            self.wait_for(lambda: not any(reference() for reference in gone))

    def test_an_exception_comes_out_of_the_wait(self):
        def fail():
            raise KeyError("mine")

        with xsched.XSchedQueue(self.stream, 1) as queue:
            with self.assertRaises(KeyError):
                queue.submit(fail).wait()

    def test_closing_launches_the_rest(self):
        queue = xsched.XSchedQueue(self.stream, 1)
        queue.suspend()
        for _ in range(3):
            queue.submit(self.launch)
        queue.close()
        self.wait_for(lambda: self.instance.launched(self.stream) == 3)

    def test_threads_may_share_a_queue(self):
        with xsched.XSchedQueue(self.stream, 1, threshold=1000, batch_size=8) as queue:
            threads = [threading.Thread(target=lambda: [queue.submit(self.launch) for _ in range(50)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.wait_for(lambda: self.instance.launched(self.stream) == 200)
            self.instance.finish(self.stream, 200)
            queue.wait()


class Ends(unittest.TestCase):
    """What is still to be launched at the end of a queue's object or of the program. Each test is a program, because it may crash."""

    def output_of(self, program):
        beginning = ("import gc, os, sys, threading, time, fake_hip, xsched\n"
                     "stream = fake_hip.Instance('XSCHED_TEST_HIP_A').stream()\n")
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", beginning + program], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_queue_that_nobody_refers_to_launches_what_was_submitted(self):
        self.assertEqual(self.output_of("""
class Launch:
    def __call__(self):
        launched.append(self)
def submit():
    queue = xsched.XSchedQueue(stream)
    queue.suspend()
    for _ in range(10):
        queue.submit(Launch())
launched = []
submit()
gc.collect()
print(sum(isinstance(found, Launch) for found in gc.get_objects()), "are kept", flush=True)
same = xsched.XSchedQueue(stream)
same.resume()
while len(launched) < 10:
    time.sleep(0.001)
print(len(launched), "are launched")"""), "10 are kept\n10 are launched\n")

    def test_a_program_ends_with_commands_on_a_suspended_queue(self):
        for _ in range(3):  # not every call after the end crashes
            self.assertEqual(self.output_of("""
queue = xsched.XSchedQueue(stream)
queue.suspend()
for _ in range(50):
    queue.submit(lambda: print("launched"))"""), "")

    def test_a_program_ends_with_commands_on_a_queue_that_runs(self):
        self.assertEqual(self.output_of("""
queue = xsched.XSchedQueue(stream)
began = threading.Event()
queue.submit(lambda: (began.set(), time.sleep(0.1), print("the first")))
for _ in range(50):
    queue.submit(lambda: print("another one"))
began.wait()"""), "the first\n", "what runs is waited for, and the rest is dropped")

    def test_a_function_that_does_not_return_does_not_keep_the_program_from_ending(self):
        self.assertEqual(self.output_of("""
from xsched import commands
commands._LONGEST_S = 0.1
queue = xsched.XSchedQueue(stream)
began = threading.Event()
queue.submit(lambda: (began.set(), threading.Event().wait()))
queue.submit(lambda: print("the second"))
began.wait()"""), "")

    def test_nothing_is_submitted_while_the_interpreter_ends(self):
        self.assertIn("RuntimeError", self.output_of("""
import atexit
from xsched import commands
atexit.unregister(commands._end)
def submit():
    try:
        queue.submit(print)
    except RuntimeError as error:
        print(repr(error))
atexit.register(submit)
atexit.register(commands._end)
queue = xsched.XSchedQueue(stream)"""))

    def test_a_child_process_does_not_wait_for_commands_of_its_parent(self):
        self.assertEqual(self.output_of("""
from xsched import commands
commands._LONGEST_S = 60
queue = xsched.XSchedQueue(stream)
began, may_end = threading.Event(), threading.Event()
queue.submit(lambda: (began.set(), may_end.wait()))
queue.submit(lambda: print("launched", flush=True))
began.wait()
child = os.fork()
if child == 0:
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
may_end.set()
queue.wait()"""), "launched\n")

    def test_a_child_process_leaves_the_block_of_a_queue_that_only_its_parent_has(self):
        self.assertEqual(self.output_of("""
with xsched.XSchedQueue(stream, 3):
    child = os.fork()
if child == 0:
    print("child", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(xsched.XSchedQueue(stream, 5).priority)"""), "child\n5\n")

    def test_a_child_process_does_not_destroy_the_streams_of_its_parent(self):
        self.assertEqual(self.output_of("""
class Stream:
    cuda_stream = stream.value
    def __del__(self):
        print("destroyed", flush=True)
xsched.XSchedQueue(Stream(), platform="hip")
child = os.fork()
if child == 0:
    gc.collect()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
os._exit(0)"""), "")


class Scheduling(unittest.TestCase):
    def tearDown(self):
        xsched.set_scheduler(xsched.Scheduler.APP_MANAGED)

    def test_a_more_urgent_stream_holds_the_others_until_it_is_done(self):
        instance = INSTANCES[0]
        xsched.set_scheduler(xsched.Scheduler.LOCAL, xsched.Policy.HIGHEST_PRIORITY_FIRST)
        urgent, other = instance.stream(), instance.stream()
        with xsched.XSchedQueue(urgent, 10) as first, xsched.XSchedQueue(other, 0) as second:
            first.submit(lambda: instance.launch(urgent))
            for _ in range(1000):
                second.submit(lambda: instance.launch(other))
            # The hold comes a moment later. From then on nothing is in flight that could go on.
            finished, seen = 0, None
            while seen != finished:
                seen, launched = finished, instance.launched(other)
                instance.finish(other, launched - finished)
                finished = launched
                time.sleep(0.05)
            self.assertLess(finished, 1000)
            instance.finish(urgent, 1)
            while finished < 1000:
                launched = instance.launched(other)
                instance.finish(other, launched - finished)
                finished = launched
            second.wait()

    def test_each_policy_can_be_chosen_and_no_other(self):
        for policy in xsched.Policy:
            xsched.set_scheduler(xsched.Scheduler.LOCAL, policy)
        with self.assertRaises(ValueError):
            xsched.set_scheduler(xsched.Scheduler.LOCAL, len(xsched.Policy) + 1)

    def test_the_timeslice_can_be_set_before_and_after_the_scheduler(self):
        xsched.set_timeslice(1000)
        xsched.set_scheduler(xsched.Scheduler.LOCAL, xsched.Policy.UTILIZATION_PARTITION)
        xsched.set_timeslice(1000)


if __name__ == "__main__":
    unittest.main()
