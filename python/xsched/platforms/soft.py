"""The software device, whose queues are made from a number and not from a stream."""
import ctypes

CREATE = "SoftQueueCreate"
GET = None
ARGUMENTS = [ctypes.c_uint32, ctypes.c_int]
RUNTIME = None
MODULE = None
