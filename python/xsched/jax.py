"""XSched for JAX. JAX shows no streams: it makes those of a device itself, and puts its programs on them. So hints are for all of this
process:

    xsched.jax.hint(priority=10)        # from now on
    with xsched.jax.hints(priority=10): # for the block
        step(state, batch).block_until_ready()

The block should wait for its results, because JAX launches ahead. Streams that JAX makes later have the process's defaults
(`xsched run --priority N`). **Not run on hardware.**
"""
import contextlib
import os
from typing import Any, Iterator, Optional

from . import server
from .block_stacks import BlockStacks, Values
from .constants import PRIORITY_DEFAULT, Result
from .hint_blocks import checked_hints
from .library import XSchedError


def hint(**hints: Any) -> None:
    """Sets hints of all queues that this process has now: those of xsched.hint. ServerError: there is no server, or no queue yet."""
    server.hint(os.getpid(), **hints)


def _apply(queue: int, _kind: str, values: Optional[Values]) -> None:
    server.hint(queue=queue, priority=values[0] if values else PRIORITY_DEFAULT)


def _is_gone(queue: int, error: XSchedError) -> bool:
    return error.result == Result.ERROR_UNKNOWN and all(other.queue != queue for other in server.queues(os.getpid()))


_stacks = BlockStacks(_apply, _is_gone)  # of the server's numbers


@contextlib.contextmanager
def hints(*, priority: int) -> Iterator[None]:
    """`with xsched.jax.hints(priority=10):` for all queues that this process has at the beginning of the block. Then each has the priority
    of the block around it again, or the one that it had. As with xsched.hints, the block that began last counts.
    RangeError: out of range. ServerError: there is no server."""
    values = checked_hints({"priority": priority})
    with contextlib.ExitStack() as ends:
        with _stacks.lock:  # so that what a queue has is not another block's, which ends before this one begins
            for queue in server.queues(os.getpid()):
                block = _stacks.begin(queue.queue, values, {"priority": (queue.priority,)})
                ends.callback(_stacks.end, queue.queue, block)
        yield
