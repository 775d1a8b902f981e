# /// script
# [tool.xsched]
# runtime = "system"
# libraries = ["rccl"]
# [tool.xsched.env]
# HIP_LIBRARY = "{runtime}"
# STANDIN_HSA_DEVICES = "2"
# NCCL_SOCKET_IFNAME = "lo"
# RCCL_USE_ROCM_SMI_LIB = "1"
# [tool.xsched.compiled]
# "librocm_smi64.so.7" = "rocm_smi.c"
# ///
"""RCCL adds up and broadcasts among two GPUs of a process, on streams of the caller."""
import ctypes
import ctypes.util
import os

GPUS = 2
NON_BLOCKING = 1
FLOAT, SUM = 7, 0
LENGTH = 4096

hip = ctypes.CDLL(os.environ["HIP_LIBRARY"])
rccl = ctypes.CDLL(ctypes.util.find_library("rccl"))


def call(library, name, *arguments):
    if (result := getattr(library, name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: {result}")


def made(name, *arguments):
    handle = ctypes.c_void_p()
    call(hip, name, ctypes.byref(handle), *arguments)
    return handle


class Rank:
    def __init__(self, gpu, communicator):
        self.communicator = communicator
        call(hip, "hipSetDevice", gpu)
        self.stream = made("hipStreamCreateWithFlags", NON_BLOCKING)
        self.sent, self.received = (made("hipMalloc", ctypes.c_size_t(4 * LENGTH)) for _ in range(2))

    def start(self, name, *how):
        call(rccl, name, self.sent, self.received, ctypes.c_size_t(LENGTH), FLOAT, *how, self.communicator, self.stream)


def on_all(ranks, name, *how):
    call(rccl, "ncclGroupStart")
    for rank in ranks:
        rank.start(name, *how)
    call(rccl, "ncclGroupEnd")


communicators = (ctypes.c_void_p * GPUS)()
call(rccl, "ncclCommInitAll", communicators, GPUS, (ctypes.c_int * GPUS)(*range(GPUS)))
ranks = [Rank(gpu, ctypes.c_void_p(communicators[gpu])) for gpu in range(GPUS)]
for _ in range(300):
    on_all(ranks, "ncclAllReduce", SUM)
    on_all(ranks, "ncclBroadcast", 0)
for rank in ranks:
    call(hip, "hipStreamSynchronize", rank.stream)
version = ctypes.c_int()
call(rccl, "ncclGetVersion", ctypes.byref(version))
print("RCCL", version.value, "on", GPUS, "GPUs")
