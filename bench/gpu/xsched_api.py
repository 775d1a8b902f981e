"""XSched's C API where XSched is in the process: priorities of streams within a program."""
import ctypes

_process = ctypes.CDLL(None)


def present():
    return hasattr(_process, "CudaQueueGet")


def set_priority(stream, priority):
    """`stream`: a torch.cuda.Stream that work has been launched on."""
    hardware_queue, queue = ctypes.c_uint64(), ctypes.c_uint64()
    for call, *arguments in ((_process.CudaQueueGet, ctypes.byref(hardware_queue), ctypes.c_void_p(stream.cuda_stream)),
                             (_process.XQueueGet, ctypes.byref(queue), hardware_queue),
                             (_process.XHintPriority, queue, ctypes.c_int32(priority))):
        if (result := call(*arguments)) != 0:
            raise RuntimeError(f"{call.__name__}: XResult {result}")
