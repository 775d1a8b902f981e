"""Priorities of streams within a process, through XSched's API where XSched is in the process."""
import ctypes


def set_priority(stream, priority):
    """`stream`: a torch.cuda.Stream that work has been launched on. False: XSched is not in this process."""
    process = ctypes.CDLL(None)
    try:
        queue_of, get, hint = process.CudaQueueGet, process.XQueueGet, process.XHintPriority
    except AttributeError:
        return False
    hardware_queue, queue = ctypes.c_uint64(), ctypes.c_uint64()
    for result in (queue_of(ctypes.byref(hardware_queue), ctypes.c_void_p(stream.cuda_stream)),
                   get(ctypes.byref(queue), hardware_queue),
                   hint(queue, ctypes.c_int32(priority))):
        if result != 0:
            raise RuntimeError(f"no priority set: XResult {result}")
    return True
