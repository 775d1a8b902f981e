"""CUDA, through NVIDIA's driver."""
import pathlib
import re

from driver_calls import ask, device_names, is_initialized, loaded_module

NAME = "CUDA"
LIBRARIES = ("libcuda.so.1",)
LOADED_AS = "/libcuda.so"
FUNCTIONS = r"cu[A-Z]"
GATE_LEVEL = 2


def probe(runtime):
    if not is_initialized("cuInit", runtime.cuInit(0)):
        return {"devices": []}
    devices = [ask(runtime, "cuDeviceGet", index) for index in range(ask(runtime, "cuDeviceGetCount"))]
    version = ask(runtime, "cuDriverGetVersion")
    return {"devices": device_names(runtime.cuDeviceGetName, devices), "version": f"{version // 1000}.{version % 1000 // 10}",
            "driver": loaded_module("nvidia") or _release_in("/proc/driver/nvidia/version")}


def distribution():
    return ""


def _release_in(path):
    try:
        found = re.search(r"\d{3,}\.[.\d]+", pathlib.Path(path).read_text(encoding="ascii"))
    except OSError:
        return ""
    return found[0] if found else ""
