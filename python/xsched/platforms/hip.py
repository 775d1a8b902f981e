"""HIP streams."""
import ctypes

CREATE = "HipQueueCreate"
GET = "HipQueueGet"
ARGUMENTS = [ctypes.c_void_p]
RUNTIME = r"/libamdhip64[^/]*\.so"
MODULE = None
