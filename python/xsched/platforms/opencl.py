"""OpenCL command queues."""
import ctypes

CREATE = "OclQueueCreate"
GET = "OclQueueGet"
ARGUMENTS = [ctypes.c_void_p]
RUNTIME = r"/libOpenCL\.so"
MODULE = "pyopencl"
