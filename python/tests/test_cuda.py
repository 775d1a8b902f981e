"""XSchedQueue over CUDA streams, of the stand-in driver."""
import ctypes
import os
import unittest

import xsched

CUDA = ctypes.CDLL(os.environ["XSCHED_TEST_CUDA"])


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        device, context = ctypes.c_int(), ctypes.c_void_p()
        assert CUDA.cuInit(0) == 0
        assert CUDA.cuDeviceGet(ctypes.byref(device), 0) == 0
        assert CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert CUDA.cuCtxSetCurrent(context) == 0

    def test_a_stream_has_a_queue(self):
        stream = ctypes.c_void_p()
        self.assertEqual(CUDA.cuStreamCreate(ctypes.byref(stream), 1), 0)
        with xsched.XSchedQueue(stream, 5, level=xsched.PreemptLevel.DEACTIVATE) as queue:
            self.assertEqual(queue.priority, 5)
            with queue.held(wait=True):
                self.assertTrue(queue.idle)

    def test_none_is_the_default_stream(self):
        with xsched.XSchedQueue(None) as queue:
            self.assertTrue(queue.idle)


if __name__ == "__main__":
    unittest.main()
