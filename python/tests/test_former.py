"""A program as it was written for XSched 1.2's Python package, over CUDA's default stream (the stand-in driver)."""
import ctypes
import inspect
import os
import unittest

from xsched import (NO_DEADLINE, NO_LAXITY, PRIORITY_MAX, TIMESLICE_DEFAULT, UTILIZATION_MAX, XPolicyType, XPreemptLevel,
                    XQueueState, XResult, XSched, XSchedulerType)
from xsched import compat
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

    def test_it_may_name_the_parameters(self):
        make_context()
        result, hwq = XSchedCuda.CudaQueueCreate(stream=0)
        self.assertIs(result, XResult.kXSchedSuccess)
        self.assertEqual(XSchedCuda.CudaQueueGet(stream=0), (XResult.kXSchedSuccess, hwq))
        result, xq = XSched.XQueueCreate(hwq=hwq, level=XPreemptLevel.kPreemptLevelBlock, flags=0)
        self.assertIs(result, XResult.kXSchedSuccess)
        self.assertEqual(XSched.XQueueGet(hwq=hwq), (XResult.kXSchedSuccess, xq))
        for result in (XSched.XHintSetScheduler(scheduler=XSchedulerType.kSchedulerLocal, policy=XPolicyType.kPolicyHighestPriorityFirst),
                       XSched.XHintPriority(xq, prio=PRIORITY_MAX), XSched.XHintUtilization(xq=xq, util=UTILIZATION_MAX),
                       XSched.XHintTimeslice(ts_us=TIMESLICE_DEFAULT),
                       XSched.XHintLaxity(xq=xq, crit_prio=1, lax_prio=0, lax_us=NO_LAXITY),
                       XSched.XHintDeadline(xq=xq, ddl_us=NO_DEADLINE), XSched.XHintKDeadline(k=16),
                       XSched.XQueueSetPreemptLevel(xq=xq, level=XPreemptLevel.kPreemptLevelInterrupt),
                       XSched.XQueueSetLaunchConfig(xq=xq, threshold=8, batch_size=4), XSched.XQueueSuspend(xq=xq, flags=1),
                       XSched.XQueueResume(xq=xq, flags=0), XSched.XQueueWaitAll(xq=xq), XSched.HwQueueSynchronize(hwq=hwq)):
            self.assertIs(result, XResult.kXSchedSuccess)
        self.assertEqual(XSched.XQueueQuery(xq=xq), (XResult.kXSchedSuccess, XQueueState.kQueueStateIdle))
        self.assertEqual(XSched.XQueueProfileHwCommandCount(xq=xq), (XResult.kXSchedSuccess, 0))
        # There is no such command.
        for result in (XSched.XQueueSubmit(xq=xq, hw_cmd=0), XSched.XQueueWait(xq=xq, hw_cmd=0),
                       XSched.HwQueueLaunch(hwq=hwq, hw_cmd=0), XSched.HwCommandDestroy(hw_cmd=0)):
            self.assertIsNot(result, XResult.kXSchedSuccess)
        self.assertIs(XSched.XQueueDestroy(xq=xq), XResult.kXSchedSuccess)
        self.assertIs(XSched.HwQueueDestroy(hwq=hwq), XResult.kXSchedSuccess)
        self.assertEqual(list(inspect.signature(XSchedHip.HipQueueCreate).parameters), ["stream"])

    def test_a_parameter_that_is_missing_or_that_it_never_had_is_an_error(self):
        for arguments, keywords in (((), {}), ((1,), {}), ((1, 2, 3), {}), ((1,), {"priority": 2}), ((1, 2), {"xq": 1})):
            with self.assertRaises(TypeError):
                XSched.XHintPriority(*arguments, **keywords)

    def test_its_priorities_are_where_it_says_that_they_come_from(self):
        self.assertEqual((compat.PRIORITY_NO_EXECUTE, compat.PRIORITY_MIN, compat.PRIORITY_DEFAULT, compat.PRIORITY_MAX), (-256, -255, 0, 255))
        names = {}
        exec("from xsched.compat import *", names)
        self.assertIn("PRIORITY_MIN", names)


if __name__ == "__main__":
    unittest.main()
