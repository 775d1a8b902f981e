"""XSchedQueue and hints over CUDA streams, of the stand-in driver with two devices."""
import concurrent.futures
import ctypes
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

os.environ["STANDIN_CUDA_DEVICES"] = "2"

import xsched  # noqa: E402 (the driver reads the environment)

CUDA = ctypes.CDLL(os.environ["XSCHED_TEST_CUDA"])


class TorchStream:
    """As torch.cuda.Stream shows itself. 0: the default stream."""

    def __init__(self, device, address=0):
        self.cuda_stream = self.stream_id = address
        self.device = types.SimpleNamespace(index=device)


TorchStream.__module__ = "torch.cuda.streams"


def context_of(device):
    context = ctypes.c_void_p()
    assert CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    return context


def current_context():
    context = ctypes.c_void_p()
    assert CUDA.cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert CUDA.cuInit(0) == 0
        assert CUDA.cuCtxSetCurrent(context_of(0)) == 0

    def setUp(self):
        torch = types.SimpleNamespace(version=types.SimpleNamespace(cuda="13.0"))
        self.enterContext(mock.patch.dict(sys.modules, {"torch": torch}))

    def stream(self):
        stream = ctypes.c_void_p()
        self.assertEqual(CUDA.cuStreamCreate(ctypes.byref(stream), 1), 0)
        return stream

    def in_thread(self, function):
        """What the function returns in a new thread, which has no CUDA context and has none afterwards."""
        def run():
            self.assertIsNone(current_context())
            try:
                return function()
            finally:
                self.assertIsNone(current_context())

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(run).result()

    def test_a_stream_has_a_queue(self):
        with xsched.XSchedQueue(self.stream(), 5, level=xsched.PreemptLevel.DEACTIVATE) as queue:
            self.assertEqual(queue.priority, 5)
            with queue.held(wait=True):
                self.assertTrue(queue.idle)

    def test_none_is_the_default_stream(self):
        with xsched.XSchedQueue(None) as queue:
            self.assertTrue(queue.idle)

    def test_a_stream_has_a_queue_in_a_thread_without_a_context(self):
        stream = self.stream()

        def priority():
            with xsched.XSchedQueue(stream, 5) as queue:
                return queue.priority

        self.assertEqual(self.in_thread(priority), 5)

    def test_in_a_thread_without_a_context_the_default_stream_of_a_framework_is_known(self):
        def priority():
            with xsched.priority(10, stream=TorchStream(0)):
                return default_queue.priority

        with xsched.XSchedQueue(None, 3) as default_queue:
            self.assertEqual(self.in_thread(priority), 10)
            self.assertEqual(default_queue.priority, 3)

    def test_in_a_thread_without_a_context_the_error_says_what_to_do(self):
        for use in (lambda: xsched.XSchedQueue(None), lambda: xsched.priority(10, stream=0).__enter__()):
            with self.assertRaisesRegex(xsched.XSchedError, "no CUDA context is current in this thread.*: pass a stream"):
                self.in_thread(use)

    def test_a_block_for_a_stream_of_which_nothing_shows_the_platform_may_say_it(self):
        stream = self.stream()
        with xsched.XSchedQueue(stream, 3) as queue, mock.patch("xsched.streams._only_loaded", side_effect=ValueError("say platform=")):
            with self.assertRaisesRegex(ValueError, "say platform="), xsched.priority(10, stream=stream):
                self.fail("the block does not begin")
            for block in (xsched.priority(10, stream=stream, platform="cuda"), xsched.hints(priority=10, stream=stream, platform="cuda")):
                with block:
                    self.assertEqual(queue.priority, 10)
                self.assertEqual(queue.priority, 3)
            for wrong in ({"stream": stream, "platform": "abacus"}, {"platform": "cuda"}):
                with self.assertRaisesRegex(ValueError, "^platform: "):
                    xsched.priority(10, **wrong)

    def test_the_default_stream_of_another_device_is_another_one(self):
        with xsched.XSchedQueue(TorchStream(0), 1) as first, xsched.XSchedQueue(TorchStream(1), 2) as second:
            self.assertNotEqual(first.handle, second.handle)
            with xsched.priority(10, stream=TorchStream(1)):
                self.assertEqual((first.priority, second.priority), (1, 10))
            with xsched.XSchedQueue(None) as current:
                self.assertEqual(current.handle, first.handle)
        self.assertEqual(current_context(), context_of(0).value)


class WithoutADriver(unittest.TestCase):
    def test_a_program_may_catch_the_error(self):
        program = """
import xsched
try:
    xsched.XSchedQueue(None, platform="cuda")
except xsched.XSchedError as error:
    print(error.result.name, error)"""
        without = {name: value for name, value in os.environ.items() if name != "XSCHED_CUDA_LIB"}
        for environment, file in ((without, "libcuda.so.1"), ({**without, "XSCHED_CUDA_LIB": "/none/libcuda.so"}, "/none/libcuda.so")):
            with self.subTest(file):
                # A program of its own, because this one has loaded the driver.
                done = subprocess.run([sys.executable, "-B", "-c", program], env=environment, capture_output=True, text=True, timeout=30,
                                      check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, f"^ERROR_NOT_FOUND CudaQueueCreate: not found: {file}")


if __name__ == "__main__":
    unittest.main()
