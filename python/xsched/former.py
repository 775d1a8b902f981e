"""The names of XSched 1.2's Python package: its enumerations, its constants, and the C functions as methods of XSched.

Each method returns an XResult, or an XResult and what the C function stores. New programs use XSchedQueue, which raises errors.
"""
import ctypes
import enum
import inspect
from typing import Any, Callable, Dict

from .constants import TIMESLICE_MAX, TIMESLICE_MIN
from .library import library

__all__ = ["HwCommandHandle", "HwQueueHandle", "XDevice", "XDeviceId", "XQueueHandle",
           "XDeviceType", "XPlatform", "XPolicyType", "XPreemptLevel", "XQueueCreateFlag", "XQueueFeature", "XQueueResumeFlag",
           "XQueueState", "XQueueSuspendFlag", "XResult", "XSched", "XSchedulerType",
           "Deadline", "Laxity", "Priority", "Timeslice", "Utilization", "NO_DEADLINE", "NO_LAXITY",
           "TIMESLICE_DEFAULT", "TIMESLICE_MAX", "TIMESLICE_MIN", "TIMESLICE_UNLIMITED",
           "UTILIZATION_DEFAULT", "UTILIZATION_MAX", "UTILIZATION_MIN"]

XDevice = XDeviceId = XQueueHandle = HwQueueHandle = HwCommandHandle = int
Priority = Utilization = Timeslice = Laxity = Deadline = int

UTILIZATION_MIN, UTILIZATION_DEFAULT, UTILIZATION_MAX = 0, 100, 100
TIMESLICE_DEFAULT = 5000
TIMESLICE_UNLIMITED = 2**64 - 1
NO_LAXITY = NO_DEADLINE = -1


def _enumeration(name: str, prefix: str, members: Dict[str, int]) -> Any:
    return enum.IntEnum(name, {prefix + member: value for member, value in members.items()}, module=__name__)


def _numbered(*names: str) -> Dict[str, int]:
    return {name: number for number, name in enumerate(names)}


XResult = _enumeration("XResult", "kXSched", {
    **_numbered("Success", "ErrorHardware", "ErrorInvalidValue", "ErrorNotFound", "ErrorNotAllowed", "ErrorNotSupported",
                "ErrorBadResponse"), "ErrorUnknown": 999})
XPlatform = _enumeration("XPlatform", "kPlatform", _numbered(
    "Unknown", "VPI", "CUDA", "CUDLA", "HIP", "Ascend", "OpenCL", "LevelZero"))
XDeviceType = _enumeration("XDeviceType", "kDeviceType", _numbered(
    "Unknown", "CPU", "GPU", "NPU", "FPGA", "ASIC", "MCA"))
XPreemptLevel = _enumeration("XPreemptLevel", "kPreemptLevel", _numbered(
    "Unknown", "Block", "Deactivate", "Interrupt", "Max"))
XQueueState = _enumeration("XQueueState", "kQueueState", _numbered("Unknown", "Idle", "Ready"))
XQueueFeature = _enumeration("XQueueFeature", "kQueueFeature", {
    "None": 0, "AsyncSubmit": 1, "DynamicLevel": 2, "DynamicThreshold": 4, "DynamicBatchSize": 8, "SyncSuspend": 16,
    "ResumeDropCommands": 32, "MaskAll": -1})
XQueueCreateFlag = _enumeration("XQueueCreateFlag", "kQueueCreateFlag", {"None": 0, "BlockingSubmit": 1, "MaskAll": -1})
XQueueSuspendFlag = _enumeration("XQueueSuspendFlag", "kQueueSuspendFlag", {
    "None": 0, "SyncHwQueue": 1, "WaitAll": 2, "WaitIdle": 4, "MaskAll": -1})
XQueueResumeFlag = _enumeration("XQueueResumeFlag", "kQueueResumeFlag", {"None": 0, "DropCommands": 1, "MaskAll": -1})
XSchedulerType = _enumeration("XSchedulerType", "kScheduler", _numbered("Unknown", "AppManaged", "Local", "Global", "Max"))
XPolicyType = _enumeration("XPolicyType", "kPolicy", _numbered(
    "Unknown", "HighestPriorityFirst", "HeterogeneousHighestPriorityFirst", "CPUHighestPriorityFirst", "UtilizationPartition",
    "ProcessUtilizationPartition", "StrictProcessUtilizationPartition", "KEarliestDeadlineFirst", "Laxity",
    "ActiveWindowFirst", "CompletelyFairScheduler", "MultiLevelFeedbackQueue", "Max"))


def _static(function: str, parameters: str, call: Callable[..., Any]) -> Any:
    """A static method with these parameters, which may be named. `call` has their values in this order."""
    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in parameters.split()])

    def method(*arguments: Any, **named: Any) -> Any:
        return call(*signature.bind(*arguments, **named).args)
    method.__name__ = function
    setattr(method, "__signature__", signature)
    return staticmethod(method)


def _method(name: str, function: str, parameters: str) -> Any:
    """The C function, whose arguments are all given."""
    def call(*arguments: Any) -> Any:
        return XResult(getattr(library(name), function)(*arguments))
    return _static(function, parameters, call)


def _making(name: str, function: str, parameters: str) -> Any:
    """One that stores a handle through its first argument: returns the result and the handle."""
    def call(*arguments: Any) -> Any:
        made = ctypes.c_uint64()
        result = XResult(getattr(library(name), function)(ctypes.byref(made), *arguments))
        return result, made.value
    return _static(function, parameters, call)


def _asking(name: str, function: str, parameters: str, answer: Any, convert: Callable[[Any], Any] = int) -> Any:
    """One that stores an answer through its last argument: returns the result and the answer."""
    def call(*arguments: Any) -> Any:
        value = answer()
        result = XResult(getattr(library(name), function)(*arguments, ctypes.byref(value)))
        return result, convert(value.value)
    return _static(function, parameters, call)


class XSched:
    """The functions of xsched/xqueue.h and xsched/hint.h that its package had."""

    XQueueCreate = _making("preempt", "XQueueCreate", "hwq level flags")
    XQueueGet = _making("preempt", "XQueueGet", "hwq")
    XQueueQuery = _asking("preempt", "XQueueQuery", "xq", ctypes.c_int, XQueueState)
    XQueueProfileHwCommandCount = _asking("preempt", "XQueueProfileHwCommandCount", "xq", ctypes.c_int64)


for _name, _parameters in {
        "XQueueDestroy": "xq", "XQueueSetPreemptLevel": "xq level", "XQueueSetLaunchConfig": "xq threshold batch_size",
        "XQueueSubmit": "xq hw_cmd", "XQueueWait": "xq hw_cmd", "XQueueWaitAll": "xq", "XQueueSuspend": "xq flags", "XQueueResume": "xq flags",
        "HwQueueDestroy": "hwq", "HwQueueLaunch": "hwq hw_cmd", "HwQueueSynchronize": "hwq", "HwCommandDestroy": "hw_cmd",
        "XHintSetScheduler": "scheduler policy", "XHintPriority": "xq prio", "XHintUtilization": "xq util", "XHintTimeslice": "ts_us",
        "XHintLaxity": "xq lax_us lax_prio crit_prio", "XHintDeadline": "xq ddl_us", "XHintKDeadline": "k"}.items():
    setattr(XSched, _name, _method("preempt", _name, _parameters))
