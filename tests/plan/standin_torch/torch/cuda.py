"""Streams, events and one kernel of a settable length, on CUDA's driver or on HIP's runtime. PLAN_TEST_PLATFORM chooses it."""
import contextlib
import os
import threading

ELEMENTS_PER_US = 10_000

if os.environ.get("PLAN_TEST_PLATFORM") == "hip":
    from torch import _hip as _platform
else:
    from torch import _cuda as _platform

_here = threading.local()

init = _platform.init
is_available = _platform.is_available
synchronize = _platform.synchronize


def device_count():
    return 1


def get_device_name(index):
    return "stand-in"


def get_device_properties(index):
    class Properties:
        total_memory = 1 << 30
    return Properties


class Stream:
    def __init__(self):
        init()
        self.cuda_stream = _platform.new_stream()

    def synchronize(self):
        _platform.synchronize_stream(self.cuda_stream)


class Event:
    def __init__(self, blocking):
        init()
        self._handle = _platform.new_event()

    def record(self, stream):
        _platform.record(self._handle, stream.cuda_stream)

    def synchronize(self):
        _platform.synchronize_event(self._handle)


@contextlib.contextmanager
def stream(stream_):
    _here.stream = stream_
    yield
    _here.stream = None


def launch(elements):
    init()
    current = getattr(_here, "stream", None)
    _platform.launch(elements / ELEMENTS_PER_US, current and current.cuda_stream)
