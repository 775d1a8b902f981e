"""Hints for a block of code, for a function, and for a queue.

    with xsched.priority(10):                     # the streams that are current in this thread
        model(request)

    @xsched.hints(priority=-5, weight=20)
    def evaluate(): ...

The hints hold from the entry to the end of the block. Then the queues have the hints of the block around it again, or those from before.
"""
import contextlib
import contextvars
import functools
import inspect
import os
import sys
import threading
from types import CodeType, CoroutineType, FrameType
from typing import Any, Callable, Coroutine, Dict, Generator, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from .block_stacks import BlockStacks, Values
from .constants import (DEADLINE_MAX, PRIORITY_MAX, PRIORITY_NO_EXECUTE, RESERVATION_PERIOD_MAX, RESERVATION_PERIOD_MIN,
                        TIMESLICE_MIN)
from .library import read_hint, unless_gone, write_hint
from .ranges import RangeError, in_range
from .streams import check_platform

Value = Union[int, Sequence[int]]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Kind(NamedTuple):
    """One kind of hint."""

    name: str                           # as the C functions have it: XHint…
    ranges: Tuple[Tuple[int, int], ...] # of each value
    agree: Callable[..., bool] = lambda *_values: True  # with each other

    def checked(self, name: str, value: Value) -> Values:
        """The arguments of the C function. RangeError: they are out of range."""
        is_text = isinstance(value, (str, bytes, bytearray))  # these are sequences too
        values: Tuple[Any, ...] = tuple(value) if isinstance(value, Sequence) and not is_text else (value,)
        if len(values) != len(self.ranges):
            raise RangeError(f"XHint{self.name}", f"{name}: {len(self.ranges)} values are expected, not {value!r}")
        values = tuple(in_range(f"XHint{self.name}", name, number, *limits) for number, limits in zip(values, self.ranges))
        if not self.agree(*values):
            raise RangeError(f"XHint{self.name}", f"{name}: the values {values} contradict each other")
        return values


def _is_reservation(guarantee: int, period: int, limit: int, burst: int) -> bool:
    """The rules of XHintReservation (xsched/hint.h)."""
    if not any((guarantee, period, limit, burst)):
        return True
    return (period >= RESERVATION_PERIOD_MIN and guarantee <= period and limit <= period and burst <= limit and guarantee + limit > 0
            and (limit == 0 or limit >= max(guarantee, TIMESLICE_MIN)))


_PRIORITIES = (PRIORITY_NO_EXECUTE, PRIORITY_MAX)
KINDS: Dict[str, Kind] = {
    "priority": Kind("Priority", (_PRIORITIES,)),
    "utilization": Kind("Utilization", ((0, 100),)),
    "weight": Kind("Weight", ((1, 10_000),)),
    "reservation": Kind("Reservation", ((0, RESERVATION_PERIOD_MAX),) * 4, _is_reservation),
    "latency_target": Kind("LatencyTarget", ((0, 1_000_000_000),)),
    "floor": Kind("Floor", ((1, 99),)),
    "deadline": Kind("Deadline", ((-1, DEADLINE_MAX),)),
    "laxity": Kind("Laxity", ((-1, DEADLINE_MAX), _PRIORITIES, _PRIORITIES)),
}


def _read(handle: int, kind: str) -> Values:
    return read_hint(KINDS[kind].name, handle)


def _write(handle: int, kind: str, values: Values) -> None:
    write_hint(KINDS[kind].name, handle, values)


_stacks = BlockStacks(_read, _write)


def set_hint(handle: int, kind: str, *values: int) -> None:
    """The owner of a queue sets one of its hints. It holds at once, and after the end of all blocks. RangeError: it is out of range."""
    _stacks.set_own(handle, kind, KINDS[kind].checked(kind, values))


_Call = Tuple[int, CodeType]
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _call_of(frame: Optional[FrameType]) -> Optional[_Call]:
    """A call of a function, or a generator or coroutine, as long as it goes on. The frame itself is not kept: it keeps all its variables, and
    so a generator would not end that nobody uses any more. Another call may get the number later; the code makes this rare. None: the call
    is not one of Python code."""
    return (id(frame), frame.f_code) if frame is not None else None


def _may_move(call: _Call) -> bool:
    """To another context: only a generator or coroutine goes on elsewhere than it began."""
    return bool(call[1].co_flags & _SUSPENDED)


class _Entry:
    """One time that a block was entered."""

    def __init__(self, block: "HintBlock", by: Optional[_Call] = None) -> None:
        self.block = block
        self.by = by
        self.ends = contextlib.ExitStack()  # of what it has begun, for each queue


# Of what is open of each block. While a thread has it, the garbage collector may end a generator that is inside a block: then the same thread
# takes it again.
_open_lock = threading.RLock()


def _renew_lock() -> None:
    """In a child of fork: another thread of the parent may have held it."""
    global _open_lock
    _open_lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)

# What this task, or thread, has entered. One variable for all blocks, because a context never forgets a variable.
_entered: "contextvars.ContextVar[Tuple[_Entry, ...]]" = contextvars.ContextVar("entered", default=())


def _entered_and_open() -> Tuple[_Entry, ...]:
    """Another task may have left some of them."""
    return tuple(entry for entry in _entered.get() if entry in entry.block._open)


def _removed(entries: List[_Entry], entry: _Entry) -> bool:
    """Takes it out. False: it is not there."""
    try:
        entries.remove(entry)
    except ValueError:
        return False
    return True


def _is(is_kind: Callable[[Any], bool], function: Any) -> bool:
    """True for a function of this kind, and for an object that is called as one."""
    return is_kind(function) or is_kind(getattr(type(function), "__call__", None))


class _Owner:
    """Of a coroutine: it is closed when nobody has its owner any more. So it ends without a warning if the one that has it never begins."""

    def __init__(self, coroutine: "CoroutineType[Any, Any, Any]") -> None:
        self.coroutine = coroutine

    def __del__(self) -> None:
        self.coroutine.close()


class HintBlock(contextlib.AbstractContextManager):  # type: ignore[type-arg]
    """A block of code with hints: what `hints` and `priority` return.

    A context manager, which may be entered again inside itself, by several threads, tasks of asyncio and generators at the same time. But if
    one thread or task enters it several times by contextlib.ExitStack, these blocks must nest: otherwise the wrong one of them ends. So
    where stacks overlap, make an object for each of them.

    Also a decorator: of a function, of a coroutine function (from its first step to its end, not while it is only created), and of a
    generator or asynchronous generator (likewise). If a function returns a coroutine, the hints hold in both.
    """

    def __init__(self, queues: Callable[[], Iterable[int]], values: Dict[str, Values]) -> None:
        """queues: the handles of those that the block is for, asked for when it is entered. One that goes meanwhile is left out."""
        self._queues = queues
        self._values = values
        self._open: List[_Entry] = []  # what was entered and not left

    def _begin(self, by: Optional[_Call] = None) -> _Entry:
        entry = _Entry(self, by)
        try:
            for handle in self._queues():
                with unless_gone():
                    entry.ends.callback(_stacks.end, handle, _stacks.begin(handle, self._values))
        except BaseException:
            entry.ends.close()
            raise
        return entry

    def __enter__(self) -> "HintBlock":
        entry = self._begin(_call_of(sys._getframe().f_back))
        with _open_lock:
            self._open.append(entry)
        _entered.set((*_entered_and_open(), entry))
        return self

    def __exit__(self, *_exception: object) -> None:
        leaving = _call_of(sys._getframe().f_back)
        with _open_lock:
            entry = self._last_entered(leaving)
            while not _removed(self._open, entry):
                entry = self._last_entered(leaving)  # the garbage collector has left this one meanwhile
        _entered.set(_entered_and_open())
        entry.ends.close()

    def _last_entered(self, by: Optional[_Call]) -> _Entry:
        """By this call, as a `with` statement does. Otherwise (contextlib.ExitStack) by this task or thread, or else the last of all. An entry
        of another context is by this call only if the call may move: otherwise that was a call with the same number."""
        own = _entered.get()

        def rank(entry: _Entry) -> Tuple[bool, bool]:
            is_own = entry in own
            is_by_call = by is not None and entry.by == by and (is_own or _may_move(by))
            return is_by_call, is_own

        # The newest one of the highest rank. The garbage collector may make the list shorter meanwhile: then the caller asks again.
        return max(reversed(self._open), key=rank, default=self._open[-1])

    @contextlib.contextmanager
    def _block(self) -> Iterator[None]:
        """As `with self`, for generators: these may begin in one task or thread and end in another one."""
        entry = self._begin()
        try:
            yield
        finally:
            entry.ends.close()

    def _around(self, coroutine: "CoroutineType[Any, Any, Any]") -> Coroutine[Any, Any, Any]:
        """A coroutine that awaits this one inside the block, under the same name."""
        async def in_block(owner: _Owner) -> Any:
            with self._block():
                return await owner.coroutine

        in_block.__qualname__ = coroutine.__qualname__
        return in_block(_Owner(coroutine))

    def __call__(self, function: _Function) -> _Function:
        if _is(inspect.iscoroutinefunction, function):
            @functools.wraps(function)
            async def in_coroutine(*arguments: Any, **keywords: Any) -> Any:
                with self._block():
                    return await function(*arguments, **keywords)
            return in_coroutine  # type: ignore[return-value]
        if _is(inspect.isasyncgenfunction, function):
            @functools.wraps(function)
            async def in_async_generator(*arguments: Any, **keywords: Any) -> Any:
                with self._block():
                    inner = function(*arguments, **keywords)
                    # As `yield from`, which asynchronous generators do not have.
                    try:
                        step = inner.__anext__()
                        while True:
                            try:
                                item = await step
                            except StopAsyncIteration:
                                return
                            try:
                                step = inner.asend((yield item))
                            except GeneratorExit:
                                raise
                            except BaseException as error:
                                step = inner.athrow(error)
                    finally:
                        await inner.aclose()
            return in_async_generator  # type: ignore[return-value]
        if _is(inspect.isgeneratorfunction, function):
            @functools.wraps(function)
            def in_generator(*arguments: Any, **keywords: Any) -> Generator[Any, Any, Any]:
                with self._block():
                    return (yield from function(*arguments, **keywords))
            return in_generator  # type: ignore[return-value]

        @functools.wraps(function)
        def in_function(*arguments: Any, **keywords: Any) -> Any:
            with self._block():
                result = function(*arguments, **keywords)
            return self._around(result) if inspect.iscoroutine(result) else result
        return in_function  # type: ignore[return-value]


def checked_hints(wanted: Dict[str, Optional[Value]]) -> Dict[str, Values]:
    """Those that are not None, checked. RangeError: out of range. ValueError: there is none. TypeError: there is one of another kind."""
    if unknown := wanted.keys() - KINDS.keys():
        raise TypeError(f"there is no hint {', '.join(sorted(unknown))}")
    values = {kind: KINDS[kind].checked(kind, value) for kind, value in wanted.items() if value is not None}
    if not values:
        raise ValueError(f"give one of the hints {', '.join(KINDS)}")
    return values


def hints(*, stream: Any = None, platform: Optional[str] = None, priority: Optional[int] = None, utilization: Optional[int] = None,
          weight: Optional[int] = None, reservation: Optional[Sequence[int]] = None, latency_target: Optional[int] = None,
          floor: Optional[int] = None, deadline: Optional[int] = None, laxity: Optional[Sequence[int]] = None) -> HintBlock:
    """`with xsched.hints(…):` sets hints for the block, `@xsched.hints(…)` for a function.

    stream: any stream that XSchedQueue takes. None: those that are current when the block begins: PyTorch's and CuPy's, if the program has
        imported them. If another stream becomes current inside the block, that one is not affected.
    platform: of `stream`, as XSchedQueue's.
    priority: -255 to 255, bigger is more urgent; -256: only while no other queue of the device has work.
    utilization: percent, 0 to 100. weight: 1 to 10,000. latency_target: µs; 0: none. floor: percent, 1 to 99. deadline: µs; -1: none.
    reservation: guarantee, period, limit and burst in µs. laxity: µs, the priority until then, and the one after that.
        XSchedQueue explains them.

    Several blocks on one stream: the hints of the one that began last hold. So if two tasks of asyncio use the same stream, the hints of one
    of them also hold for what the other one launches; give each a stream of its own (`xsched.stream`). One object may be entered many times
    (HintBlock), but not by stacks (contextlib.ExitStack) that overlap in one thread or task: those need an object each, or the decorator.

    Launches are only scheduled under `xsched run`. Without it, a block changes nothing for a stream that the program may destroy (all but
    default streams and those of PyTorch's pool), unless there is an XSchedQueue over it. What is set in other ways inside the block (by `xsched hint`, or the C library's functions)
    holds until its end.
    RangeError (a ValueError): out of range. RuntimeError: no stream is current. XSchedError, OSError: as XSchedQueue's.
    """
    from .current import current_streams
    from .queue import queue_over  # it uses this module

    check_platform(platform)
    if platform is not None and stream is None:
        raise ValueError("platform: of which stream? say stream=…; 0 is the default stream")
    values = checked_hints({"priority": priority, "utilization": utilization, "weight": weight, "reservation": reservation,
                            "latency_target": latency_target, "floor": floor, "deadline": deadline, "laxity": laxity})
    def queues() -> Iterator[int]:
        for each in current_streams() if stream is None else [stream]:
            if (handle := queue_over(each, platform)) is not None:
                yield handle

    return HintBlock(queues, values)


def priority(value: int, stream: Any = None, platform: Optional[str] = None) -> HintBlock:
    """`with xsched.priority(10):` is `with xsched.hints(priority=10):`, likewise as a decorator."""
    return hints(priority=value, stream=stream, platform=platform)
