"""Calls of a device's driver or runtime, as drivers of different makers have them in common."""
import ctypes
import pathlib


def ask(runtime, name, *arguments):
    """Calls a function that stores a count or a version in an integer, and returns that."""
    value = ctypes.c_int()
    if (result := getattr(runtime, name)(ctypes.byref(value), *arguments)) != 0:
        raise RuntimeError(f"{name} returns {result}")
    return value.value


def is_initialized(name, result):
    if result not in (0, 100, 101):  # 100 and 101: there is no device
        raise RuntimeError(f"{name} returns {result}")
    return result == 0


def device_names(get_name, devices):
    names = []
    for device in devices:
        name = ctypes.create_string_buffer(256)
        get_name(name, 256, device)
        names.append(name.value.decode(errors="replace"))
    return names


def loaded_module(name):
    """The version of a module of the kernel; "": it is not loaded, or has none."""
    try:
        return pathlib.Path("/sys/module", name, "version").read_text(encoding="ascii").strip()
    except OSError:
        return ""
