"""CUDA streams."""
import ctypes

CREATE = "CudaQueueCreate"
GET = "CudaQueueGet"
ARGUMENTS = [ctypes.c_void_p]
RUNTIME = r"/libcuda\.so"
MODULE = None
