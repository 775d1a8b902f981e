"""Instances of the fake HIP runtime (src/hal/hip/testing). ctypes opens them, as in Python programs with AMD's runtime."""
import contextlib
import ctypes
import os


class Instance:
    """One opened instance. `variable` names the environment variable with its path."""

    def __init__(self, variable):
        self._library = ctypes.CDLL(os.environ[variable])
        for name in ("FakeLaunch", "FakeLaunched"):
            getattr(self._library, name).argtypes = [ctypes.c_void_p]
        self._library.FakeLaunched.restype = ctypes.c_uint64
        self._library.FakeFinish.argtypes = [ctypes.c_void_p, ctypes.c_uint64]

    def stream(self):
        made = ctypes.c_void_p()
        assert self._library.hipStreamCreate(ctypes.byref(made)) == 0
        return made

    def device(self):
        """The number of this thread's current device."""
        number = ctypes.c_int()
        assert self._library.hipGetDevice(ctypes.byref(number)) == 0
        return number.value

    @contextlib.contextmanager
    def on_device(self, number):
        """As torch.cuda.device and cupy.cuda.Device: in the block, this device is current."""
        before = self.device()
        assert self._library.hipSetDevice(number) == 0
        try:
            yield
        finally:
            assert self._library.hipSetDevice(before) == 0

    def launch(self, stream):
        assert self._library.FakeLaunch(stream) == 0

    def finish(self, stream, count):
        self._library.FakeFinish(stream, count)

    def launched(self, stream):
        return self._library.FakeLaunched(stream)
