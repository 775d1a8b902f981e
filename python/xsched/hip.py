"""XSched 1.2's xsched.hip."""
from .former import _making

hipStream_t = int


class XSchedHip:
    """The functions of xsched/hip/hal.h."""

    HipQueueCreate = _making("halhip", "HipQueueCreate", "stream")
    HipQueueGet = _making("halhip", "HipQueueGet", "stream")
