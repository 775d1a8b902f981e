"""The urgent program: 50 times a second it occupies the device for ten milliseconds, until it is killed.

  urgent.py RUNTIME     the runtime's library
"""
import ctypes
import sys
import time

NON_BLOCKING = 1
PERIOD = 0.02
BUSY_US = 10_000

hip = ctypes.CDLL(sys.argv[1])
usleep = ctypes.CDLL(None).usleep


def call(name, *arguments):
    if (result := getattr(hip, name)(*arguments)) != 0:
        sys.exit(f"{name}: {result}")


stream = ctypes.c_void_p()
call("hipStreamCreateWithFlags", ctypes.byref(stream), NON_BLOCKING)
while True:
    begin = time.monotonic()
    call("hipLaunchHostFunc", stream, usleep, ctypes.c_void_p(BUSY_US))
    call("hipStreamSynchronize", stream)
    time.sleep(max(0.0, begin + PERIOD - time.monotonic()))
