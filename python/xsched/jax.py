"""XSched for JAX. JAX shows no streams: it makes those of a device itself, and puts its programs on them. So hints are for all of this
process:

    xsched.jax.hint(priority=10)        # from now on
    with xsched.jax.hints(priority=10): # for the block
        step(state, batch).block_until_ready()

The block should wait for its results, because JAX launches ahead. Streams that JAX makes later have the process's defaults
(`xsched run --priority N`). **Not run on hardware.**
"""
import os
from typing import Any

from . import server
from .hint_blocks import HintBlock, checked_hints
from .queue import own_queues


def hint(**hints: Any) -> None:
    """Sets hints of all queues that this process has now: those of xsched.hint. ServerError: there is no server, or no queue yet."""
    server.hint(os.getpid(), **hints)


def hints(**wanted: Any) -> HintBlock:
    """`with xsched.jax.hints(priority=10):` as `with xsched.hints(priority=10):`, for all queues that this process has at the beginning of
    the block. It needs no server. RangeError: out of range."""
    return HintBlock(own_queues, checked_hints(wanted))
