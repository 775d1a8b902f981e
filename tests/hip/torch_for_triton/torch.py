"""As much of PyTorch as Triton's AMD backend asks for: a device, a stream, and memory of HIP's."""
import ctypes
import os
import types

_hip = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])
NON_BLOCKING = 1


def _call(name, *arguments):
    if (result := getattr(_hip, name)(*arguments)) != 0:
        raise RuntimeError(f"{name}: {result}")


_stream = ctypes.c_void_p()
_call("hipStreamCreateWithFlags", ctypes.byref(_stream), NON_BLOCKING)


class Tensor:
    dtype = "torch.float32"
    device = "cuda:0"

    def __init__(self, length):
        self._memory = ctypes.c_void_p()
        _call("hipMalloc", ctypes.byref(self._memory), ctypes.c_size_t(4 * length))

    def data_ptr(self):
        return self._memory.value


cuda = types.SimpleNamespace(
    is_available=lambda: True,
    current_device=lambda: 0,
    set_device=lambda device: None,
    get_device_capability=lambda *device: (9, 0),
    current_stream=lambda *device: types.SimpleNamespace(cuda_stream=_stream.value),
    synchronize=lambda: _call("hipStreamSynchronize", _stream))
version = types.SimpleNamespace(hip="7.2", cuda=None)
