"""The platforms of streams, one module each: {its name: its module}.

A module has
    CREATE      the function of the HAL's library (libhal<name>.so) that makes a HwQueue from a stream
    GET         the one that finds the HwQueue of a stream that has one, with the same arguments; None: there is none
    ARGUMENTS   the types of its arguments, behind the one for the handle
    RUNTIME     a pattern for the path of the loaded runtime; None: it has no streams, and no XSchedQueue is made over them
    MODULE      the Python module whose streams are always this platform's; None: none
"""
import importlib
import pkgutil

PLATFORMS = {name: importlib.import_module(f"{__name__}.{name}") for name in sorted(
    module.name for module in pkgutil.iter_modules(__path__))}
