#!/usr/bin/env python3
"""Asks one part of this machine, and prints the answer as a line of JSON. It is a separate process, because drivers may crash or hang.

  device_probe.py PLATFORM|torch      {"devices": […], …} or {"problem": "…"}
"""
import ctypes
import json
import sys

from platforms import PLATFORMS


def library(names):
    problems = []
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problems.append(str(error))
    raise RuntimeError(problems[0])


def probe(part):
    if part == "torch":
        return torch()
    platform = PLATFORMS[part]
    return platform.probe(library(platform.LIBRARIES))


def torch():
    try:
        import torch as framework
    except ImportError as error:
        return {"problem": "not installed" if error.name == "torch" else str(error)}
    answer = {"version": framework.__version__, "devices": [], "memory_gib": 0}
    # The version of the platform that it was built for; None for the others.
    answer |= {name: getattr(framework.version, name, None) for name in PLATFORMS}
    gpus = framework.cuda  # whatever the platform
    if gpus.is_available():
        answer["devices"] = [gpus.get_device_name(index) for index in range(gpus.device_count())]
        answer["memory_gib"] = gpus.get_device_properties(0).total_memory >> 30
        framework.zeros(1, device=0)
        answer["runtime_library"] = runtime_library()
    return answer


def runtime_library():
    """The runtime instance, or the driver, that PyTorch uses."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if any(platform.LOADED_AS in path for platform in PLATFORMS.values()):
                return path
    return None


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in (*PLATFORMS, "torch"):
        sys.exit(__doc__)
    try:
        result = probe(sys.argv[1])
    except Exception as error:  # whatever a driver or a framework raises is the answer
        result = {"problem": f"{type(error).__name__}: {error}" if not isinstance(error, RuntimeError) else str(error)}
    print(json.dumps(result))
