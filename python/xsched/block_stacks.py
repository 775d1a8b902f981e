"""What is asked for queues, outside of hint blocks and in them."""
import os
import threading
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from .library import unless_gone

Values = Tuple[int, ...]
Hints = Mapping[str, Values]  # by their kinds


class Block:
    """The hints of one block for one queue."""

    def __init__(self, values: Hints) -> None:
        self.values = values


class _Queue:
    """What is asked for one queue: by its owner, and by the blocks that have begun and not ended, in this order."""

    def __init__(self) -> None:
        self.own: Dict[str, Values] = {}
        self.blocks: List[Block] = []

    def wanted(self, kind: str) -> Optional[Values]:
        """The block that began last counts, whichever of them ends first: the blocks of several tasks may overlap."""
        for block in reversed(self.blocks):
            if kind in block.values:
                return block.values[kind]
        return self.own.get(kind)


class BlockStacks:
    """The blocks of all queues, which have handles that are never used again.

    apply(queue, kind, values) sets a hint; values are None if nobody asks for any.
    """

    def __init__(self, apply: Callable[[int, str, Optional[Values]], None]) -> None:
        self._apply = apply
        self._begin_process()
        os.register_at_fork(after_in_child=self._begin_process)

    def _begin_process(self) -> None:
        """A child of fork has none of the queues, and not the thread of the parent that may have held the lock."""
        self._lock = threading.RLock()  # while it is held, no block begins or ends
        self._queues: Dict[int, _Queue] = {}

    def set_own(self, queue: int, kind: str, values: Values) -> None:
        """The owner of a queue sets a hint. It holds at once, and after the end of all blocks."""
        with self._lock:
            self._apply(queue, kind, values)
            self._queues.setdefault(queue, _Queue()).own[kind] = values

    def forget(self, queue: int) -> None:
        """The queue is gone."""
        with self._lock:
            self._queues.pop(queue, None)

    def begin(self, queue: int, values: Hints) -> Block:
        block = Block(values)
        with self._lock:
            self._queues.setdefault(queue, _Queue()).blocks.append(block)
            try:
                for kind, wanted in values.items():
                    self._apply(queue, kind, wanted)
            except BaseException:
                self.end(queue, block)
                raise
        return block

    def end(self, queue: int, block: Block) -> None:
        with self._lock:
            asked = self._queues.get(queue)
            if asked is None:
                return
            asked.blocks.remove(block)
            if not asked.blocks and not asked.own:
                del self._queues[queue]
            with unless_gone():
                for kind in block.values:
                    self._apply(queue, kind, asked.wanted(kind))
