"""The hints of queues in hint blocks, and after them."""
import os
import threading
from typing import Callable, Dict, List, Mapping, Tuple

from .library import unless_gone

Values = Tuple[int, ...]
Hints = Mapping[str, Values]  # by their kinds


class Block:
    """The hints of one block for one queue."""

    def __init__(self, values: Hints) -> None:
        self.values = values


class _Queue:
    """A queue with blocks that have begun and not ended, in this order."""

    def __init__(self) -> None:
        self.before: Dict[str, Values] = {}  # of the hints that these blocks set: what the queue had, and will have after them
        self.blocks: List[Block] = []

    def after_end(self, kind: str) -> Values:
        """What it has when a block has ended. The block that began last counts, whichever of them ends first: the blocks of several tasks may
        overlap."""
        for block in reversed(self.blocks):
            if kind in block.values:
                return block.values[kind]
        return self.before.pop(kind)


class BlockStacks:
    """The blocks of all queues, which have handles that are never used again.

    read(queue, kind) returns one of the queue's hints, and write(queue, kind, values) sets it.
    """

    def __init__(self, read: Callable[[int, str], Values], write: Callable[[int, str, Values], None]) -> None:
        self._read = read
        self._write = write
        self._begin_process()
        os.register_at_fork(after_in_child=self._begin_process)

    def _begin_process(self) -> None:
        """A child of fork has none of the queues, and not the thread of the parent that may have held the lock."""
        self._lock = threading.RLock()  # while it is held, no block begins or ends
        self._queues: Dict[int, _Queue] = {}  # those with blocks

    def set_own(self, queue: int, kind: str, values: Values) -> None:
        """The owner of a queue sets a hint. It holds at once, and after the end of all blocks."""
        with self._lock:
            self._write(queue, kind, values)
            if queue in self._queues and kind in self._queues[queue].before:
                self._queues[queue].before[kind] = values

    def begin(self, queue: int, values: Hints) -> Block:
        block = Block(values)
        with self._lock:
            # In this order: making an object may end another block of the queue, by the garbage collector.
            found = self._queues.get(queue) or _Queue()
            found.blocks.append(block)
            self._queues[queue] = found
            try:
                for kind, wanted in values.items():
                    if kind not in found.before:
                        found.before[kind] = self._read(queue, kind)
                    self._write(queue, kind, wanted)
            except BaseException:
                self.end(queue, block)
                raise
        return block

    def end(self, queue: int, block: Block) -> None:
        with self._lock:
            found = self._queues.get(queue)
            if found is None:
                return  # of the parent process
            found.blocks.remove(block)
            if not found.blocks:
                del self._queues[queue]
            with unless_gone():
                for kind in block.values:
                    if kind in found.before:  # otherwise the block has not begun
                        self._write(queue, kind, found.after_end(kind))
