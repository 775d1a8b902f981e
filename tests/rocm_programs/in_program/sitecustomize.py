"""Python loads this in each program. If handlers run while the program ends, ROCm 7's HIP sometimes crashes, natively as well, so the
program waits for them (tests/standin/hsa/standin_hsa.h)."""
import atexit
import ctypes
import os


def await_handlers():
    try:
        agent = ctypes.CDLL("libhsa-runtime64.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return
    agent.standin_hsa_await_handlers()


atexit.register(await_handlers)
