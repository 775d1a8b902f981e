"""XSchedQueue over OpenCL command queues, of whatever device there is."""
import ctypes
import unittest

import xsched

OPENCL = ctypes.CDLL("libOpenCL.so.1")
CL_DEVICE_TYPE_ALL = ctypes.c_uint64(0xFFFFFFFF)


def make_queue():
    platform, device, error = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    assert OPENCL.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
    assert OPENCL.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, ctypes.byref(device), None) == 0
    OPENCL.clCreateContext.restype = OPENCL.clCreateCommandQueue.restype = ctypes.c_void_p
    context = ctypes.c_void_p(OPENCL.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(error)))
    assert error.value == 0
    queue = OPENCL.clCreateCommandQueue(context, device, ctypes.c_uint64(0), ctypes.byref(error))
    assert error.value == 0
    return queue


class CommandQueues(unittest.TestCase):
    def test_a_command_queue_has_a_queue(self):
        with xsched.XSchedQueue(make_queue(), 5) as queue:
            self.assertEqual(queue.priority, 5)
            with queue.held(wait=True):
                self.assertTrue(queue.idle)
            queue.wait()

    def test_it_has_level_1_whatever_level_is_asked_for(self):
        with xsched.XSchedQueue(make_queue(), level=xsched.PreemptLevel.DEACTIVATE) as queue:
            self.assertTrue(queue.idle)

    def test_a_second_queue_over_the_same_command_queue_is_the_first(self):
        stream = make_queue()
        with xsched.XSchedQueue(stream, 5) as first, xsched.XSchedQueue(stream, 6) as second:
            self.assertEqual(first.handle, second.handle)


if __name__ == "__main__":
    unittest.main()
