"""XSched 1.2's xsched.cuda."""
from .former import _making

CUstream = int


class XSchedCuda:
    """The functions of xsched/cuda/hal.h."""

    CudaQueueCreate = _making("halcuda", "CudaQueueCreate", "stream")
    CudaQueueGet = _making("halcuda", "CudaQueueGet", "stream")
