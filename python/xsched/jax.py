"""XSched for JAX. JAX shows no streams: it makes those of a device itself, and puts its programs on them. So hints are for all of this
process:

    xsched.jax.hint(priority=10)        # from now on
    with xsched.jax.hints(priority=10): # for the block
        step(state, batch).block_until_ready()

The block should wait for its results, because JAX launches ahead. JAX makes its streams when it first runs something: before that, both
have no effect. Streams that it makes later have the process's defaults (`xsched run --priority N`). **Not run on hardware.**
"""
from typing import Any

from .hint_blocks import HintBlock, checked_hints, set_hint
from .library import unless_gone
from .queue import own_queues


def hint(**wanted: Any) -> None:
    """Sets hints of all queues that this process has now: those of xsched.hints. It needs no server. RangeError: out of range.
    OSError: XSched's C libraries cannot be loaded."""
    values = checked_hints(wanted)
    for handle in own_queues():
        with unless_gone():
            for kind, value in values.items():
                set_hint(handle, kind, *value)


def hints(**wanted: Any) -> HintBlock:
    """`with xsched.jax.hints(priority=10):` as `with xsched.hints(priority=10):`, for all queues that this process has at the beginning of
    the block. It needs no server. RangeError: out of range. OSError: XSched's C libraries cannot be loaded, when the block begins."""
    return HintBlock(own_queues, checked_hints(wanted))
