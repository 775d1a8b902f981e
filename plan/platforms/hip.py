"""HIP, through AMD's runtime."""
import pathlib

from driver_calls import ask, device_names, is_initialized, loaded_module

NAME = "HIP"
LIBRARIES = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so")
LOADED_AS = "/libamdhip64"
FUNCTIONS = r"hip[A-Z]"
GATE_LEVEL = 1


def probe(runtime):
    if not is_initialized("hipInit", runtime.hipInit(0)):
        return {"devices": []}
    devices = range(ask(runtime, "hipGetDeviceCount"))
    version = ask(runtime, "hipRuntimeGetVersion")  # major, two digits; minor, two or three; build, five
    return {"devices": device_names(runtime.hipDeviceGetName, devices),
            "version": f"{version // 10_000_000}.{version // 100_000 % 100}", "driver": loaded_module("amdgpu")}


def distribution():
    try:
        version = pathlib.Path("/opt/rocm/.info/version").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return f"ROCm {version}"
