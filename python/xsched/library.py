"""XSched's C libraries: found, loaded once, and called with results checked."""
import contextlib
import ctypes
import functools
import os
import pathlib
import re
import sys
import sysconfig
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Tuple, Type, Union

from .constants import Result
from .platforms import PLATFORMS
from .programs import INSTALLED, find

VERSION = 2  # of the libraries' names


class XSchedError(RuntimeError):
    """A call that the C library refused.

    function: its name; result: a Result. The C headers (xsched/*.h) explain the results of each function.
    """

    def __init__(self, function: str, result: int, message: Optional[str] = None) -> None:
        """message: None: the function and what the result means."""
        try:
            result = Result(result)
            meaning = result.name.replace("ERROR_", "").replace("_", " ").lower()
        except ValueError:
            meaning = f"unknown result {result}"
        super().__init__(f"{function}: {meaning}" if message is None else message)
        self.function = function
        self.result: Union[Result, int] = result

    def __reduce__(self) -> Tuple[Any, ...]:
        """For pickle, which brings an error to another process: by default it would pass the message alone to the class."""
        return _remade, (type(self), *self.args), self.__dict__


def _remade(kind: Type[XSchedError], *arguments: Any) -> XSchedError:
    """An error with these arguments (`args`)."""
    return kind.__new__(kind, *arguments)


@contextlib.contextmanager
def unless_gone() -> Iterator[None]:
    """In the block, it is no error that a queue is not there any more: its program has destroyed it."""
    try:
        yield
    except XSchedError as error:
        if error.result != Result.ERROR_NOT_FOUND:
            raise


# The hints of a queue: their values' types.
_HINTS: Dict[str, List[Any]] = {
    "Priority": [ctypes.c_int32],
    "Utilization": [ctypes.c_int32],
    "Weight": [ctypes.c_int32],
    "Reservation": [ctypes.c_int64] * 4,
    "LatencyTarget": [ctypes.c_int64],
    "Floor": [ctypes.c_int32],
    "Laxity": [ctypes.c_int64, ctypes.c_int32, ctypes.c_int32],
    "Deadline": [ctypes.c_int64],
}

# The C functions, by library: argument types after which the result is an XResult.
_HANDLE = ctypes.c_uint64
_OUT = ctypes.POINTER(_HANDLE)
LAUNCH_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, _HANDLE, ctypes.c_void_p)
_FUNCTIONS: Dict[str, Dict[str, List[Any]]] = {
    "preempt": {
        "XQueueCreate": [_OUT, _HANDLE, ctypes.c_int64, ctypes.c_int64],
        "XQueueCreateAuto": [_OUT, _HANDLE],
        "XQueueDestroy": [_HANDLE],
        "XQueueGet": [_OUT, _HANDLE],
        "XQueueList": [_OUT, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)],
        "XQueueSetPreemptLevel": [_HANDLE, ctypes.c_int],
        "XQueueGetPreemptLevel": [_HANDLE, ctypes.POINTER(ctypes.c_int)],
        "XQueueSetLaunchConfig": [_HANDLE, ctypes.c_int64, ctypes.c_int64],
        "XQueueSubmit": [_HANDLE, _HANDLE],
        "XQueueWait": [_HANDLE, _HANDLE],
        "XQueueWaitAll": [_HANDLE],
        "XQueueQuery": [_HANDLE, ctypes.POINTER(ctypes.c_int)],
        "XQueueSuspend": [_HANDLE, ctypes.c_int64],
        "XQueueResume": [_HANDLE, ctypes.c_int64],
        "XQueueProfileHwCommandCount": [_HANDLE, ctypes.POINTER(ctypes.c_int64)],
        "HwQueueDestroy": [_HANDLE],
        "HwQueueLaunch": [_HANDLE, _HANDLE],
        "HwQueueSynchronize": [_HANDLE],
        "HwCommandCreateCallback": [_OUT, LAUNCH_CALLBACK, ctypes.c_void_p],
        "HwCommandDestroy": [_HANDLE],
        "XHintSetScheduler": [ctypes.c_int, ctypes.c_int],
        "XHintTimeslice": [ctypes.c_int64],
        "XHintKDeadline": [ctypes.c_size_t],
        **{f"XHint{kind}": [_HANDLE, *types] for kind, types in _HINTS.items()},
        **{f"XHintGet{kind}": [_HANDLE, *map(ctypes.POINTER, types)] for kind, types in _HINTS.items()},
    },
    **{f"hal{name}": {function: [_OUT, *platform.ARGUMENTS] for function in (platform.CREATE, platform.GET) if function}
       for name, platform in PLATFORMS.items()},
}


def _is_loaded(file: str) -> bool:
    """True if this process has loaded a library with this name, in any way. It may have been replaced since, by an upgrade."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return re.search(rf"/{re.escape(file)}[.\d]*( \(deleted\))?$", maps.read(), re.MULTILINE) is not None


@functools.lru_cache(maxsize=None)
def has_shim(platform: str) -> bool:
    """True if the process has loaded the platform's shim, which sees launches and the end of streams. No stream is older than it."""
    return _is_loaded(f"libshim{platform}.so.{VERSION}")


def _candidates(name: str) -> Iterator[str]:
    file = f"lib{name}.so.{VERSION}"
    if _is_loaded(file):
        yield file  # the linker knows it by this name
        return  # a second instance would not know the first one's queues
    if folder := os.environ.get("XSCHED_LIBRARY_DIR"):
        yield str(pathlib.Path(folder, file))
        return
    if INSTALLED.exists():
        yield str(INSTALLED / "lib" / file)
    yield file
    program = find("xsched")
    prefixes = [pathlib.Path(program).resolve().parent.parent] if program else []
    prefixes += [pathlib.Path(sys.prefix), pathlib.Path("/usr/local")]
    for prefix in prefixes:
        for folder in ("lib", f"lib/{sysconfig.get_config_var('MULTIARCH') or 'x86_64-linux-gnu'}", "lib64"):
            yield str(prefix / folder / file)


def _missing(function: str, path: str) -> Callable[..., NoReturn]:
    """In place of a function that an older library does not have."""
    def refuse(*_arguments: Any) -> NoReturn:
        raise XSchedError(function, Result.ERROR_NOT_SUPPORTED, f"{function}: not supported: {path} is older than this package")
    return refuse


@functools.lru_cache(maxsize=None)
def library(name: str) -> ctypes.CDLL:
    """One of XSched's C libraries as a ctypes.CDLL whose functions have their types: "preempt", or "hal" and the name of
    a platform.

    It is the one that this process has loaded (for example under a shim), or else that of the folder XSCHED_LIBRARY_DIR, or else that of this
    package's wheel, or else one that the dynamic linker finds, or one that is installed beside the program xsched. OSError: there is none.
    A function that it does not have, because it is older than this package, raises XSchedError (NOT_SUPPORTED) when it is called.
    """
    problems: Dict[str, str] = {}
    for path in _candidates(name):
        try:
            found = ctypes.CDLL(path)
        except OSError as error:
            problems[path] = str(error)
            continue
        for function, types in _FUNCTIONS[name].items():
            if hasattr(found, function):
                getattr(found, function).argtypes = types
                getattr(found, function).restype = ctypes.c_int
            else:
                setattr(found, function, _missing(function, path))
        return found
    # What is wrong with the files that are there says more than that others are not.
    told = [why for path, why in problems.items() if os.path.exists(path)] or list(problems.values())[:1]
    raise OSError(f"XSched's lib{name}.so.{VERSION} cannot be loaded ({'; '.join(told)}); XSCHED_LIBRARY_DIR can say where it is")


def call(name: str, function: str, *arguments: Any) -> None:
    """Calls it, and raises XSchedError if it does not succeed. Other Python threads run meanwhile."""
    result = getattr(library(name), function)(*arguments)
    if result != Result.SUCCESS:
        raise XSchedError(function, result)


def handle(name: str, function: str, *arguments: Any) -> int:
    """As call, for a function that makes an object: it stores the handle through its first argument."""
    made = _HANDLE()
    call(name, function, ctypes.byref(made), *arguments)
    return made.value


def ask(answer: Any, name: str, function: str, *arguments: Any) -> int:
    """As call, for a function that stores its answer through its last argument. `answer` is the ctypes type of the answer."""
    value = answer()
    call(name, function, *arguments, ctypes.byref(value))
    return int(value.value)


def read_hint(kind: str, queue: int) -> Tuple[int, ...]:
    """What the queue with this handle has now, of one of the hints."""
    values = [of_type() for of_type in _HINTS[kind]]
    call("preempt", f"XHintGet{kind}", queue, *map(ctypes.byref, values))
    return tuple(value.value for value in values)


def write_hint(kind: str, queue: int, values: Tuple[int, ...]) -> None:
    """Sets one of the queue's hints."""
    call("preempt", f"XHint{kind}", queue, *values)
