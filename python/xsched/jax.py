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
from typing import Any, Iterator, List

from . import server


def hint(**hints: Any) -> None:
    """Sets hints of all queues that this process has now: those of xsched.hint. ServerError: there is no server, or no queue yet."""
    server.hint(os.getpid(), **hints)


@contextlib.contextmanager
def hints(*, priority: int) -> Iterator[None]:
    """`with xsched.jax.hints(priority=10):` for all queues that this process has at the beginning of the block. Then each has the priority
    that it had. ServerError: there is no server."""
    before: List[server.QueueInfo] = server.queues(os.getpid())
    server.hint(os.getpid(), priority=priority)
    try:
        yield
    finally:
        remaining = {queue.queue for queue in server.queues(os.getpid())}
        for queue in before:
            if queue.queue in remaining:
                server.hint(queue=queue.queue, priority=queue.priority)
