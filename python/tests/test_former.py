"""A program as it was written for XSched 1.2's Python package, over CUDA's default stream (the stand-in driver)."""
import ctypes
import os
import unittest

from xsched import (NO_DEADLINE, NO_LAXITY, PRIORITY_MAX, TIMESLICE_DEFAULT, UTILIZATION_MAX, XPolicyType, XPreemptLevel,
                    XQueueState, XResult, XSched, XSchedulerType)
from xsched.cuda import XSchedCuda
from xsched.hip import XSchedHip


def make_context():
    cuda = ctypes.CDLL(os.environ["XSCHED_TEST_CUDA"], ctypes.RTLD_GLOBAL)
    context = ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context):
        raise RuntimeError("no context")


class ProgramOf12(unittest.TestCase):
    def test_its_names_and_answers_are_there(self):
        make_context()
        result, hwq = XSchedCuda.CudaQueueCreate(0)
        self.assertIs(result, XResult.kXSchedSuccess)
        self.assertEqual(XSchedCuda.CudaQueueGet(0), (XResult.kXSchedSuccess, hwq))
        result, xq = XSched.XQueueCreate(hwq, XPreemptLevel.kPreemptLevelBlock, 0)
        self.assertIs(result, XResult.kXSchedSuccess)
        self.assertEqual(XSched.XQueueCreate(hwq, XPreemptLevel.kPreemptLevelBlock, 0), (XResult.kXSchedSuccess, xq))
        self.assertEqual(XSched.XQueueGet(hwq), (XResult.kXSchedSuccess, xq))
        for result in (XSched.XHintSetScheduler(XSchedulerType.kSchedulerLocal, XPolicyType.kPolicyHighestPriorityFirst),
                       XSched.XHintPriority(xq, PRIORITY_MAX), XSched.XHintUtilization(xq, UTILIZATION_MAX),
                       XSched.XHintTimeslice(TIMESLICE_DEFAULT), XSched.XHintLaxity(xq, NO_LAXITY, 0, 1),
                       XSched.XHintDeadline(xq, NO_DEADLINE), XSched.XHintKDeadline(16),
                       XSched.XQueueSetPreemptLevel(xq, XPreemptLevel.kPreemptLevelInterrupt),
                       XSched.XQueueSetLaunchConfig(xq, 8, 4), XSched.XQueueSuspend(xq, 1), XSched.XQueueResume(xq, 0),
                       XSched.XQueueWaitAll(xq), XSched.HwQueueSynchronize(hwq)):
            self.assertIs(result, XResult.kXSchedSuccess)
        self.assertEqual(XSched.XQueueQuery(xq), (XResult.kXSchedSuccess, XQueueState.kQueueStateIdle))
        self.assertEqual(XSched.XQueueProfileHwCommandCount(xq), (XResult.kXSchedSuccess, 0))
        self.assertIs(XSched.XQueueDestroy(xq), XResult.kXSchedSuccess)
        self.assertIs(XSched.HwQueueDestroy(hwq), XResult.kXSchedSuccess)
        self.assertIs(XSched.XQueueDestroy(xq), XResult.kXSchedErrorNotFound)
        self.assertTrue(callable(XSchedHip.HipQueueCreate))
        self.assertTrue(callable(XSchedHip.HipQueueGet))


if __name__ == "__main__":
    unittest.main()
