#!/usr/bin/env python3
"""What one part of this machine answers, as one line of JSON; a process of its own, since drivers crash and hang.

  device_probe.py cuda|hip|torch      {"devices": […], …} or {"problem": "…"}
"""
import ctypes
import json
import pathlib
import re
import sys

# The names under which the runtimes are installed; the first that loads is asked.
LIBRARIES = {"cuda": ("libcuda.so.1",), "hip": ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                                "/opt/rocm/lib/libamdhip64.so")}


def library(platform):
    problems = []
    for name in LIBRARIES[platform]:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problems.append(str(error))
    raise RuntimeError(problems[0])


def ask(runtime, name, *arguments):
    """A count or version: what the function puts into the integer that it is given."""
    value = ctypes.c_int()
    if (result := getattr(runtime, name)(ctypes.byref(value), *arguments)) != 0:
        raise RuntimeError(f"{name} returns {result}")
    return value.value


def initialised(name, result):
    if result not in (0, 100, 101):  # 100 and 101: there is no device
        raise RuntimeError(f"{name} returns {result}")
    return result == 0


def cuda():
    runtime = library("cuda")
    if not initialised("cuInit", runtime.cuInit(0)):
        return {"devices": []}
    names = []
    for index in range(ask(runtime, "cuDeviceGetCount")):
        name = ctypes.create_string_buffer(256)
        runtime.cuDeviceGetName(name, 256, ask(runtime, "cuDeviceGet", index))
        names.append(name.value.decode(errors="replace"))
    version = ask(runtime, "cuDriverGetVersion")
    return {"devices": names, "version": f"{version // 1000}.{version % 1000 // 10}", "driver": nvidia_module()}


def nvidia_module():
    return loaded_module("nvidia") or release_in("/proc/driver/nvidia/version")


def loaded_module(name):
    try:
        return pathlib.Path("/sys/module", name, "version").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def release_in(path):
    try:
        found = re.search(r"\d{3,}\.[.\d]+", pathlib.Path(path).read_text(encoding="ascii"))
    except OSError:
        return ""
    return found[0] if found else ""


def hip():
    runtime = library("hip")
    if not initialised("hipInit", runtime.hipInit(0)):
        return {"devices": []}
    names = []
    for index in range(ask(runtime, "hipGetDeviceCount")):
        name = ctypes.create_string_buffer(256)
        runtime.hipDeviceGetName(name, 256, index)
        names.append(name.value.decode(errors="replace"))
    version = ask(runtime, "hipRuntimeGetVersion")  # major, two digits; minor, two or three; build, five
    return {"devices": names, "version": f"{version // 10_000_000}.{version // 100_000 % 100}", "driver": loaded_module("amdgpu")}


def torch():
    try:
        import torch as framework
    except ImportError as error:
        return {"problem": "not installed" if error.name == "torch" else str(error)}
    answer = {"version": framework.__version__, "cuda": framework.version.cuda, "hip": framework.version.hip, "devices": [],
              "memory_gib": 0}
    if framework.cuda.is_available():
        answer["devices"] = [framework.cuda.get_device_name(index) for index in range(framework.cuda.device_count())]
        answer["memory_gib"] = framework.cuda.get_device_properties(0).total_memory >> 30
        framework.zeros(1, device="cuda")
        answer["runtime_library"] = runtime_library()
    return answer


def runtime_library():
    """The copy of the driver or runtime that PyTorch uses."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if any(name in path for name in ("/libcuda.so", "/libamdhip64")):
                return path
    return None


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("cuda", "hip", "torch"):
        sys.exit(__doc__)
    try:
        result = {"cuda": cuda, "hip": hip, "torch": torch}[sys.argv[1]]()
    except Exception as error:  # whatever a driver or a framework raises is the answer
        result = {"problem": f"{type(error).__name__}: {error}" if not isinstance(error, RuntimeError) else str(error)}
    print(json.dumps(result))
