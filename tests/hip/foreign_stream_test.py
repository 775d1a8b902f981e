"""XSchedQueue over a stream of a program that brings its own runtime instance, as PyTorch does, where something else has loaded
another instance before."""
import ctypes
import os
import threading
import unittest

from xsched import XSchedQueue

DESTROYED_CONTEXT = 709

installed = ctypes.CDLL(os.environ["TEST_INSTALLED_RUNTIME"])
program = ctypes.CDLL(os.environ["TEST_BUNDLED_PROGRAM"])
hsa = ctypes.CDLL("libhsa-runtime64.so.1")


def succeed(result):
    if result != 0:
        raise AssertionError(f"HIP says {result}")


def tearDownModule():
    hsa.standin_hsa_await_handlers()


def runs():
    return hsa.standin_hsa_dispatches(b"append")


class ForeignStream(unittest.TestCase):
    def setUp(self):
        self.stream = ctypes.c_void_p()
        self.log = ctypes.c_void_p()
        succeed(program.ProgramStream(ctypes.byref(self.stream)))
        succeed(program.ProgramMemory(ctypes.byref(self.log), ctypes.c_size_t(4096)))
        self.before = runs()

    def append(self):
        succeed(program.ProgramAppend(self.stream, self.log, 7))

    def synchronize(self):
        succeed(program.ProgramSynchronize(self.stream))

    def entries(self):
        count = ctypes.c_int()
        succeed(program.ProgramRead(ctypes.byref(count), self.log, ctypes.c_size_t(4)))
        return count.value


class WithoutShim(ForeignStream):
    def test_the_other_instance_does_not_know_the_stream(self):
        self.assertEqual(installed.hipGetStreamDeviceId(self.stream), -1)
        version = ctypes.c_int()
        succeed(installed.hipRuntimeGetVersion(ctypes.byref(version)))
        if version.value < 70000000:  # later ones do not ask
            self.assertEqual(installed.hipStreamSynchronize(self.stream), DESTROYED_CONTEXT)

    def test_what_is_submitted_waits_while_the_queue_is_held(self):
        with XSchedQueue(self.stream, 5) as queue:
            queue.suspend()
            command = queue.submit(self.append)
            self.assertFalse(queue.idle)
            self.assertEqual(runs(), self.before)
            queue.resume()
            command.wait()
            self.assertEqual(runs(), self.before + 1)
            self.assertEqual(self.entries(), 1)

    def test_a_queue_can_be_made_in_another_thread(self):
        made = []
        thread = threading.Thread(target=lambda: made.append(XSchedQueue(self.stream, 1)))
        thread.start()
        thread.join()
        with made[0] as queue:
            queue.submit(self.append).wait()
        self.assertEqual(self.entries(), 1)


class UnderShim(ForeignStream):
    def test_what_is_launched_waits_while_the_queue_is_held(self):
        self.append()
        self.synchronize()
        with XSchedQueue(self.stream, 5) as queue:
            self.assertEqual(queue.command_count, 1)
            with queue.held():
                launcher = threading.Thread(target=self.append)
                launcher.start()
                launcher.join(0.05)
                self.assertTrue(launcher.is_alive())
                self.assertEqual(runs(), self.before + 1)
            launcher.join()
            queue.wait()
        self.synchronize()
        self.assertEqual(self.entries(), 2)

    def test_a_launch_that_keeps_pythons_lock_does_not_stop_other_threads_while_it_is_held(self):
        # As Triton's launcher: this way of calling a library keeps the lock.
        with_lock = ctypes.PyDLL(os.environ["TEST_BUNDLED_PROGRAM"])
        self.append()
        self.synchronize()
        with XSchedQueue(self.stream, 5) as queue:
            with queue.held():
                launcher = threading.Thread(target=with_lock.ProgramAppend, args=(self.stream, self.log, 7))
                launcher.start()
                # Which needs the lock.
                launcher.join(0.05)
                self.assertTrue(launcher.is_alive())
            launcher.join()
            queue.wait()
        self.synchronize()
        self.assertEqual(self.entries(), 2)

    def test_a_queue_made_before_the_first_launch_is_the_streams(self):
        with XSchedQueue(self.stream, 5) as queue:
            self.append()
            self.assertEqual(queue.command_count, 1)
            queue.wait()
            self.assertEqual(self.entries(), 1)

    def test_the_default_stream_has_a_queue(self):
        with XSchedQueue(None, platform="hip") as queue:
            self.assertIn("priority 0", repr(queue))


if __name__ == "__main__":
    unittest.main()
