"""The platforms on which the plan runs, one module each: {the name of its folder everywhere: its module}.

A module has
    NAME          for people
    LIBRARIES     the names of its runtime's library; the first that loads is used
    LOADED_AS     a part of the path of the library that a program has loaded, which may be one of its own
    FUNCTIONS     a pattern for the names of its functions
    GATE_LEVEL    its best level below 3: commands in flight when a queue is suspended run to their end
    probe(runtime)       {"devices": […], "version": "…", "driver": "…"}; runs in a process of its own (device_probe.py)
    distribution()       of what its runtime is a part, with its version; "": nothing, or not known
"""
import importlib
import pkgutil

PLATFORMS = {name: importlib.import_module(f"{__name__}.{name}") for name in sorted(
    module.name for module in pkgutil.iter_modules(__path__))}
