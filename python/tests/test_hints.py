"""Hints for blocks of code. Over a stand-in for the C library; test_server.py has the real one."""
import _thread
import asyncio
import collections
import contextlib
import contextvars
import functools
import gc
import operator
import os
import signal
import subprocess
import sys
import threading
import types
import unittest
import warnings
import weakref
from unittest import mock

import xsched
from xsched import hint_blocks
from xsched.constants import Result


class Library:
    """The C library: the hints of each queue, by their kinds. A stream's queue has the stream's number."""

    DEFAULTS = {"Priority": (0,), "Utilization": (100,), "Weight": (100,), "Reservation": (0, 0, 0, 0), "LatencyTarget": (0,), "Floor": (5,),
                "Deadline": (-1,), "Laxity": (-1, 0, 0)}

    def __init__(self):
        self.present = {}
        self.gone = set()
        self.refused = set()

    def check(self, kind, queue):
        if queue in self.gone:
            raise xsched.XSchedError(kind, Result.ERROR_NOT_FOUND)

    def read(self, kind, queue):
        self.check(kind, queue)
        return self.present.get((queue, kind), self.DEFAULTS[kind])

    def write(self, kind, queue, values):
        self.check(kind, queue)
        if kind in self.refused:
            raise xsched.XSchedError(kind, Result.ERROR_UNKNOWN)
        self.present[queue, kind] = values

    def priority(self, queue):
        return self.present.get((queue, "Priority"), (None,))[0]


class HintTest(unittest.TestCase):
    def setUp(self):
        self.library = Library()
        for target, replacement in (("xsched.hint_blocks.read_hint", self.library.read), ("xsched.hint_blocks.write_hint", self.library.write),
                                    ("xsched.queue.queue_over", lambda stream, _platform=None: int(stream))):
            patch = mock.patch(target, replacement)
            patch.start()
            self.addCleanup(patch.stop)
        hint_blocks._stacks._queues.clear()

    def run_in_child(self, body):
        """Forks. The child, which must not take longer than 30 s, calls `body`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that this process has threads is what is tested
            child = os.fork()
        if child == 0:
            signal.alarm(30)
            status = 1
            try:
                body()
                status = 0
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Blocks(HintTest):
    def test_a_priority_holds_in_the_block(self):
        with xsched.priority(10, stream=1):
            self.assertEqual(self.library.priority(1), 10)
        self.assertEqual(self.library.priority(1), 0)
        self.assertEqual(hint_blocks._stacks._queues, {}, "nothing is kept")

    def test_blocks_nest(self):
        with xsched.priority(10, stream=1):
            with xsched.priority(-3, stream=1):
                self.assertEqual(self.library.priority(1), -3)
            self.assertEqual(self.library.priority(1), 10)
        self.assertEqual(self.library.priority(1), 0)

    def test_one_block_may_be_entered_again_inside_itself(self):
        block = xsched.priority(10, stream=1)
        with block:
            with xsched.priority(3, stream=1), block:
                self.assertEqual(self.library.priority(1), 10)
            self.assertEqual(self.library.priority(1), 10)
        self.assertEqual(self.library.priority(1), 0)

    def test_an_exception_ends_it(self):
        with self.assertRaises(KeyError), xsched.priority(10, stream=1):
            raise KeyError
        self.assertEqual(self.library.priority(1), 0)

    def test_what_the_queue_had_is_there_again_whoever_has_set_it(self):
        self.library.present[1, "Priority"] = (7,)
        self.library.present[1, "Laxity"] = (5000, 0, 5)
        with xsched.hints(stream=1, priority=10, laxity=(100, 0, 9)):
            self.assertEqual(self.library.present[1, "Laxity"], (100, 0, 9))
        self.assertEqual(self.library.priority(1), 7)
        self.assertEqual(self.library.present[1, "Laxity"], (5000, 0, 5))

    def test_what_is_set_between_two_blocks_of_a_hint_is_there_again_although_a_block_of_another_hint_is_open(self):
        with xsched.hints(stream=1, weight=300):
            with xsched.priority(10, stream=1):
                pass
            self.library.present[1, "Priority"] = (7,)
            with xsched.priority(10, stream=1):
                pass
            self.assertEqual(self.library.priority(1), 7)
        self.assertEqual(self.library.present[1, "Weight"], (100,))

    def test_what_the_queues_owner_says_is_there_again(self):
        hint_blocks.set_hint(1, "priority", 4)
        with xsched.priority(10, stream=1):
            hint_blocks.set_hint(1, "priority", 5)
            self.assertEqual(self.library.priority(1), 5, "it holds at once")
        self.assertEqual(self.library.priority(1), 5)

    def test_each_hint_has_its_function(self):
        wanted = {"priority": 3, "utilization": 20, "weight": 300, "reservation": (1000, 20_000, 0, 0), "latency_target": 5000, "floor": 7,
                  "deadline": 9000, "laxity": (100, 1, 2)}
        self.assertEqual(wanted.keys(), hint_blocks.KINDS.keys())
        with xsched.hints(stream=1, **wanted):
            for name, kind in hint_blocks.KINDS.items():
                value = wanted[name]
                self.assertEqual(self.library.present[1, kind.name], value if isinstance(value, tuple) else (value,))
        for kind in hint_blocks.KINDS.values():
            self.assertEqual(self.library.present[1, kind.name], self.library.DEFAULTS[kind.name])

    def test_what_the_library_would_ignore_is_an_error(self):
        for wanted in ({"priority": 256}, {"priority": -257}, {"priority": 1.5}, {"weight": 0}, {"floor": 100}, {"reservation": (1, 2)}, {},
                       {"priority": True}, {"weight": 2**32 + 50}, {"deadline": 2**62}, {"laxity": (2**62, 0, 0)}, {"reservation": (1, 5, 0, 0)}, {"reservation": (5000, 1000, 0, 0)}):
            with self.assertRaises(ValueError):
                xsched.hints(stream=1, **wanted)

    def test_a_hint_of_several_values_may_be_any_sequence(self):
        with xsched.hints(stream=1, laxity=[100, 0, 9], reservation=[1000, 20_000, 0, 0]):
            self.assertEqual(self.library.present[1, "Laxity"], (100, 0, 9))
            self.assertEqual(self.library.present[1, "Reservation"], (1000, 20_000, 0, 0))
        for wrong in ([100, 0], 100):
            with self.assertRaisesRegex(xsched.RangeError, "^laxity: 3 values are expected, not"):
                xsched.hints(stream=1, laxity=wrong)

    def test_text_and_bytes_are_no_sequences_of_values(self):
        for wrong in ("10", b"\x05", bytearray(b"\x05")):
            with self.subTest(wrong), self.assertRaisesRegex(xsched.RangeError, "^priority: .* is no whole number from -256 to 255$"):
                xsched.priority(wrong, stream=1)
        for wrong in ("123", b"\x05\x01\x02"):
            with self.subTest(wrong), self.assertRaisesRegex(xsched.RangeError, "^laxity: 3 values are expected, not"):
                xsched.hints(stream=1, laxity=wrong)

    def test_a_hint_of_the_owner_that_is_out_of_range_changes_nothing(self):
        hint_blocks.set_hint(1, "weight", 20)
        with self.assertRaises(xsched.RangeError):
            hint_blocks.set_hint(1, "weight", 99999)
        self.assertEqual(self.library.present[1, "Weight"], (20,))
        with xsched.hints(stream=1, weight=500):
            pass
        self.assertEqual(self.library.present[1, "Weight"], (20,))

    def test_a_hint_that_is_refused_leaves_no_block(self):
        self.library.refused.add("Weight")
        with self.assertRaises(xsched.XSchedError), xsched.hints(stream=1, priority=10, weight=3):
            self.fail("the block does not begin")
        self.assertEqual(self.library.priority(1), 0)
        self.assertEqual(hint_blocks._stacks._queues, {})

    def test_a_queue_that_goes_while_the_block_begins_is_left_out(self):
        self.library.gone.add(1)
        with mock.patch("xsched.jax.own_queues", lambda: [1, 2]), xsched.jax.hints(priority=10, weight=3):
            self.assertEqual((self.library.priority(1), self.library.priority(2)), (None, 10))
        self.assertEqual(self.library.priority(2), 0)
        self.assertEqual(hint_blocks._stacks._queues, {})

    def test_a_stream_may_be_destroyed_in_the_block(self):
        with xsched.priority(10, stream=1):
            self.library.gone.add(1)
        self.assertEqual(hint_blocks._stacks._queues, {})


class SeveralAtATime(HintTest):
    def test_of_tasks_that_share_a_stream_the_last_one_to_begin_counts(self):
        seen = []

        async def task(priority, before, after):
            await before.wait()
            with xsched.priority(priority, stream=1):
                seen.append(self.library.priority(1))
                await after.wait()
            seen.append(self.library.priority(1))

        async def both():
            begin, first_ends, second_ends = asyncio.Event(), asyncio.Event(), asyncio.Event()
            begin.set()
            first = asyncio.ensure_future(task(10, begin, first_ends))
            second = asyncio.ensure_future(task(5, begin, second_ends))
            await asyncio.sleep(0.01)
            first_ends.set()  # the one that began first ends first
            await first
            second_ends.set()
            await second

        asyncio.run(both())
        self.assertEqual(seen, [10, 5, 5, 0])

    def test_tasks_may_enter_the_same_block(self):
        block = xsched.priority(10, stream=1)

        async def task(end):
            with block:
                await end.wait()
                self.assertEqual(self.library.priority(1), 10)

        async def all_of_them():
            ends = [asyncio.Event() for _ in range(3)]
            tasks = [asyncio.ensure_future(task(end)) for end in ends]
            await asyncio.sleep(0)
            for end, running in zip(ends, tasks):
                end.set()
                await running

        asyncio.run(all_of_them())
        self.assertEqual(self.library.priority(1), 0)

    def test_threads_with_streams_of_their_own_do_not_disturb_each_other(self):
        inside = threading.Barrier(8)
        found = []

        def work(stream):
            for _ in range(50):
                with xsched.priority(stream, stream=stream):
                    found.append(self.library.priority(stream) == stream)
            inside.wait()

        threads = [threading.Thread(target=work, args=(stream,)) for stream in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 400)
        self.assertEqual({self.library.priority(stream) for stream in range(1, 9)}, {0})


    def test_a_block_may_end_in_another_context_than_it_began_in(self):
        def items():
            with xsched.priority(10, stream=1):
                yield self.library.priority(1)

        begun = items()
        self.assertEqual(contextvars.Context().run(next, begun), 10)
        contextvars.Context().run(begun.close)
        self.assertEqual(self.library.priority(1), 0)
        block = xsched.priority(10, stream=1)
        block.__enter__()
        contextvars.Context().run(block.__exit__)
        with block:  # what this context still remembers has ended
            self.assertEqual(self.library.priority(1), 10)
        self.assertEqual(self.library.priority(1), 0)
        self.assertEqual(hint_blocks._stacks._queues, {})


    def generators_of_one_block(self):
        """Two generators that are inside one block, which is for the streams that are current: 1 for the first one, and 2 for the other one."""
        current = []
        self.enterContext(mock.patch("xsched.current.current_streams", lambda: current[-1:]))
        block = xsched.priority(10)

        def items():
            with block:
                yield

        begun = []
        for stream in (1, 2):
            current.append(stream)
            begun.append(items())
            next(begun[-1])
        return begun

    def assert_ends_its_own(self, end_first):
        first, second = self.generators_of_one_block()
        end_first(first)
        self.assertEqual((self.library.priority(1), self.library.priority(2)), (0, 10))
        second.close()
        self.assertEqual((self.library.priority(1), self.library.priority(2)), (0, 0))
        self.assertEqual(hint_blocks._stacks._queues, {})

    def test_a_generator_ends_the_hints_of_its_own_stream_although_another_one_has_entered_the_block_since(self):
        self.assert_ends_its_own(lambda first: first.close())

    def test_a_generator_ends_the_hints_of_its_own_stream_also_in_another_thread(self):
        def in_thread(first):
            thread = threading.Thread(target=first.close)
            thread.start()
            thread.join()

        self.assert_ends_its_own(in_thread)

    def test_a_block_may_be_entered_and_left_by_what_is_not_written_in_python(self):
        written = threading.Semaphore(0)

        def write(kind, queue, values):
            self.library.write(kind, queue, values)
            written.release()

        block = xsched.priority(10, stream=1)
        with mock.patch("xsched.hint_blocks.write_hint", write):
            for act, priority in ((block.__enter__, 10), (block.__exit__, 0)):
                _thread.start_new_thread(act, ())
                self.assertTrue(written.acquire(timeout=10))
                self.assertEqual(self.library.priority(1), priority)

    def assert_ends_the_hints_of_its_own_context(self, switch):
        """switch: enters or leaves a block. It is called in two contexts, as by two threads."""
        with mock.patch("xsched.current.current_streams", side_effect=[[1], [2]]):
            block = xsched.priority(10)
            first, second = contextvars.Context(), contextvars.Context()
            for context in (first, second):
                context.run(switch, block, True)
        first.run(switch, block, False)
        self.assertEqual((self.library.priority(1), self.library.priority(2)), (0, 10))
        second.run(switch, block, False)
        self.assertEqual((self.library.priority(1), self.library.priority(2)), (0, 0))
        self.assertEqual(hint_blocks._stacks._queues, {})

    def test_a_function_that_enters_and_leaves_ends_the_hints_of_its_own_context(self):
        def switch(block, on):
            block.__enter__() if on else block.__exit__(None, None, None)

        self.assert_ends_the_hints_of_its_own_context(switch)

    def test_a_coroutine_that_enters_and_leaves_ends_the_hints_of_its_own_context(self):
        async def switch(block, on):
            block.__enter__() if on else block.__exit__(None, None, None)

        def run(block, on):
            with self.assertRaises(StopIteration):
                switch(block, on).send(None)

        self.assert_ends_the_hints_of_its_own_context(run)

    def test_threads_without_python_code_each_end_the_hints_of_their_own_stream(self):
        def in_thread(*acts):
            _thread.start_new_thread(collections.deque, (map(operator.methodcaller("__call__"), acts),))

        # The methods of a lock are not written in Python either.
        first_entered, second_entered, first_left = (_thread.allocate_lock() for _ in range(3))
        for lock in (first_entered, second_entered, first_left):
            lock.acquire()
        with mock.patch("xsched.current.current_streams", side_effect=[[1], [2]]):
            block = xsched.priority(10)
            in_thread(block.__enter__, first_entered.release, second_entered.acquire, block.__exit__, first_left.release)
            self.assertTrue(first_entered.acquire(timeout=10))
            in_thread(block.__enter__, second_entered.release)
            self.assertTrue(first_left.acquire(timeout=10))
        self.assertEqual((self.library.priority(1), self.library.priority(2)), (0, 10))
        block.__exit__()
        self.assertEqual(hint_blocks._stacks._queues, {})

    def test_stacks_that_nest_each_end_the_hints_of_their_own_stream(self):
        with mock.patch("xsched.current.current_streams") as current:
            block = xsched.priority(10)
            stacks = []
            for stream in (1, 2):
                current.return_value = [stream]
                stacks.append(contextlib.ExitStack())
                stacks[-1].enter_context(block)
            stacks[1].close()
            self.assertEqual((self.library.priority(1), self.library.priority(2)), (10, 0))
            stacks[0].close()
            self.assertEqual((self.library.priority(1), self.library.priority(2)), (0, 0))

    def test_a_stream_without_a_queue_is_left_out(self):
        with mock.patch("xsched.queue.queue_over", lambda *_arguments: None), xsched.priority(10, stream=1):
            self.assertEqual(hint_blocks._stacks._queues, {})

    def test_blocks_leave_nothing_in_their_context(self):
        async def enter_many():
            before = len(contextvars.copy_context())
            for _ in range(100):
                with xsched.priority(10, stream=1):
                    await asyncio.sleep(0)
            return len(contextvars.copy_context()) - before

        self.assertLessEqual(asyncio.run(enter_many()), 1)

    def test_what_ends_in_other_contexts_is_not_kept(self):
        entered = []
        for _ in range(10):
            block = xsched.priority(10, stream=1)
            block.__enter__()
            contextvars.Context().run(block.__exit__)
            entered.append(weakref.ref(block))
        with block:
            pass
        del block
        gc.collect()
        self.assertEqual([reference for reference in entered if reference()], [])


class Forks(HintTest):
    def assert_a_block_works_in_a_child(self, hold):
        """hold: a lock, which another thread has when this one forks."""
        held, end = threading.Event(), threading.Event()

        def other():
            with hold:
                held.set()
                end.wait()

        def enter():
            with xsched.priority(10, stream=1):
                self.assertEqual(self.library.priority(1), 10)
            self.assertEqual(self.library.priority(1), 0)

        thread = threading.Thread(target=other)
        thread.start()
        held.wait()
        try:
            self.assertEqual(self.run_in_child(enter), 0)
        finally:
            end.set()
            thread.join()

    def test_a_child_may_enter_a_block_although_another_thread_was_setting_hints(self):
        self.assert_a_block_works_in_a_child(hint_blocks._stacks._lock)

    def test_a_child_may_enter_a_block_although_another_thread_was_entering_one(self):
        self.assert_a_block_works_in_a_child(hint_blocks._open_lock)

    def test_a_child_does_not_set_hints_of_the_queues_of_its_parent(self):
        block = xsched.priority(10, stream=1)
        block.__enter__()

        def leave():
            self.library.present.clear()
            block.__exit__(None, None, None)
            self.assertEqual(self.library.present, {})

        self.assertEqual(self.run_in_child(leave), 0)
        self.assertEqual(self.library.priority(1), 10, "of the parent it holds")
        block.__exit__(None, None, None)
        self.assertEqual(self.library.priority(1), 0)


class Collects(list):
    """A list at whose changes the garbage collector runs, as it may at any time."""

    def append(self, item):
        gc.collect()
        super().append(item)

    def remove(self, item):
        gc.collect()
        super().remove(item)


class GarbageCollection(HintTest):
    def abandon_in(self, block):
        """Leaves a generator that is inside the block to the garbage collector."""
        def items():
            with block:
                yield

        begun = types.SimpleNamespace(items=items())
        begun.itself = begun
        next(begun.items)

    def assert_ends_at(self, begins):
        """A generator may end while the same thread begins, or else ends, a block. In a child process, for the time limit."""
        block = xsched.priority(10, stream=1)

        def enter():
            gc.disable()
            if begins:
                block._open = Collects()
                self.abandon_in(block)
                block.__enter__()
                block.__exit__()
            else:
                block.__enter__()
                self.abandon_in(block)
                block._open = Collects(block._open)
                block.__exit__()
            self.assertEqual((self.library.priority(1), hint_blocks._stacks._queues, block._open), (0, {}, []))

        self.assertEqual(self.run_in_child(enter), 0)

    def test_it_may_end_a_generator_inside_a_block_while_its_thread_enters_one(self):
        self.assert_ends_at(begins=True)

    def test_it_may_end_a_generator_inside_a_block_while_its_thread_leaves_one(self):
        self.assert_ends_at(begins=False)

    def test_it_may_end_the_other_block_of_a_queue_while_one_begins(self):
        block = xsched.priority(10, stream=1)
        self.abandon_in(block)
        queue = hint_blocks._stacks._queues[1]
        queue.blocks = Collects(queue.blocks)
        with xsched.priority(3, stream=1):
            self.assertEqual(self.library.priority(1), 3)
        self.assertEqual((self.library.priority(1), hint_blocks._stacks._queues), (0, {}))


class Decorators(HintTest):
    def test_a_function(self):
        @xsched.priority(10, stream=1)
        def work(a, *, b):
            """What it does."""
            return a, b, self.library.priority(1)

        self.assertEqual(work(1, b=2), (1, 2, 10))
        self.assertEqual(self.library.priority(1), 0)
        self.assertEqual((work.__name__, work.__doc__), ("work", "What it does."))

    def test_a_coroutine_function_from_its_first_step_to_its_end(self):
        @xsched.priority(10, stream=1)
        async def work():
            await asyncio.sleep(0)
            return self.library.priority(1)

        coroutine = work()
        self.assertIsNone(self.library.priority(1), "it has not begun")
        self.assertEqual(asyncio.run(coroutine), 10)
        self.assertEqual(self.library.priority(1), 0)

    def test_what_is_called_as_a_coroutine_function_and_is_none(self):
        seen = []

        async def work():
            await asyncio.sleep(0)
            seen.append(self.library.priority(1))
            return "done"

        class Callable:
            async def __call__(self):
                return await work()

        def wrapped():
            seen.append(self.library.priority(1))
            return work()

        for number, function in enumerate((Callable(), Callable().__call__, functools.partial(work), lambda: work(), wrapped)):
            with self.subTest(number):
                seen.clear()
                self.assertEqual(asyncio.run(xsched.priority(10, stream=1)(function)()), "done")
                self.assertEqual(set(seen), {10})
                self.assertEqual(self.library.priority(1), 0)
                self.assertEqual(hint_blocks._stacks._queues, {})

    def warnings_of(self, act):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            act()
            gc.collect()
        return [str(warning.message) for warning in found]

    def test_a_coroutine_that_a_function_returns_ends_with_the_one_around_it_also_if_none_has_begun(self):
        async def work():
            self.fail("it does not begin")

        work.__qualname__ = "work"

        @xsched.priority(10, stream=1)
        def begin():
            return work()

        async def cancel():
            task = asyncio.ensure_future(begin())
            task.cancel()
            await asyncio.wait([task])

        self.assertEqual(self.warnings_of(lambda: begin().close()), [])
        self.assertEqual(self.warnings_of(lambda: asyncio.run(cancel())), [])
        self.assertEqual(self.warnings_of(begin), ["coroutine 'work' was never awaited"])

    def test_what_is_called_as_a_generator_function_and_is_none(self):
        class Items:
            def __call__(self):
                yield self_of_test.library.priority(1)

        class AsynchronousItems:
            async def __call__(self):
                yield self_of_test.library.priority(1)

        async def collect():
            return [item async for item in xsched.priority(10, stream=1)(AsynchronousItems())()]

        self_of_test = self
        self.assertEqual(list(xsched.priority(10, stream=1)(Items())()), [10])
        self.assertEqual(asyncio.run(collect()), [10])
        self.assertEqual(self.library.priority(1), 0)

    def test_a_task_that_a_function_returns_stays_one(self):
        async def main():
            @xsched.priority(10, stream=1)
            def begin():
                return asyncio.ensure_future(asyncio.sleep(0, "done"))

            task = begin()
            self.assertIsInstance(task, asyncio.Future)
            return await task

        self.assertEqual(asyncio.run(main()), "done")

    def test_a_generator_from_its_first_item_to_its_end(self):
        @xsched.priority(10, stream=1)
        def items():
            yield self.library.priority(1)
            yield self.library.priority(1)

        self.assertEqual(list(items()), [10, 10])
        self.assertEqual(self.library.priority(1), 0)

    def test_a_generator_may_end_in_another_task_than_it_began_in(self):
        @xsched.priority(10, stream=1)
        def items():
            yield self.library.priority(1)
            yield self.library.priority(1)

        begun = items()
        self.assertEqual(contextvars.Context().run(next, begun), 10)
        self.assertEqual(contextvars.Context().run(list, begun), [10])
        self.assertEqual(self.library.priority(1), 0)
        abandoned = items()
        contextvars.Context().run(next, abandoned)
        abandoned.close()
        self.assertEqual(self.library.priority(1), 0)

    def test_an_asynchronous_generator_likewise(self):
        @xsched.priority(10, stream=1)
        async def items():
            yield self.library.priority(1)

        async def collect():
            return [item async for item in items()]

        self.assertEqual(asyncio.run(collect()), [10])
        self.assertEqual(self.library.priority(1), 0)


    def test_what_is_sent_to_or_thrown_into_an_asynchronous_generator_reaches_it(self):
        async def items(events):
            try:
                events.append(("sent", (yield "first")))
                try:
                    yield "second"
                except KeyError:
                    events.append("caught")
                yield "third"
            finally:
                await asyncio.sleep(0)
                events.append("closed")

        async def use(function):
            events = []
            began = function(events)
            events += [await began.__anext__(), await began.asend("value"), await began.athrow(KeyError())]
            await began.aclose()
            for error in (KeyError("mine"), BaseException("mine")):
                began = function(events)
                await began.__anext__()
                try:
                    await began.athrow(error)
                except BaseException as thrown:
                    events.append(thrown is error)
            return events, [item async for item in function(events)]

        self.assertEqual(asyncio.run(use(xsched.priority(10, stream=1)(items))), asyncio.run(use(items)))

    def test_an_asynchronous_generator_that_is_closed_has_its_hints_to_its_end(self):
        closed = []

        @xsched.priority(10, stream=1)
        async def items():
            try:
                yield
            finally:
                await asyncio.sleep(0)
                closed.append(self.library.priority(1))

        async def close():
            begun = items()
            await begun.__anext__()
            await begun.aclose()
            return list(closed)

        self.assertEqual(asyncio.run(close()), [10])
        self.assertEqual(self.library.priority(1), 0)


class Stream:
    """A stream of PyTorch and of CuPy in one."""

    def __init__(self, number):
        self.cuda_stream = self.ptr = number

    def __int__(self):
        return self.cuda_stream


def fake_torch(current, *, available=True, new=None):
    cuda = types.SimpleNamespace(is_available=lambda: available, current_stream=lambda: Stream(current), Stream=lambda: Stream(new),
                                 stream=lambda stream: ("block of", stream.cuda_stream))
    return types.SimpleNamespace(cuda=cuda)


def fake_cupy(current, *, available=True, new=None):
    cuda = types.SimpleNamespace(get_current_stream=lambda: Stream(current), Stream=lambda non_blocking: Stream(new))
    return types.SimpleNamespace(cuda=cuda, is_available=lambda: available)


class Frameworks(HintTest):
    def run_in(self, modules, body):
        with mock.patch.dict(sys.modules, modules):
            for name in {"torch", "cupy"} - modules.keys():
                sys.modules.pop(name, None)
            body()

    def test_a_block_is_for_the_current_streams(self):
        def body():
            with xsched.priority(10):
                self.assertEqual((self.library.priority(3), self.library.priority(4)), (10, 10))
            self.assertEqual((self.library.priority(3), self.library.priority(4)), (0, 0))

        self.run_in({"torch": fake_torch(3), "cupy": fake_cupy(4)}, body)

    def test_one_stream_of_two_frameworks_is_one(self):
        def body():
            with xsched.priority(10):
                self.assertEqual(len(hint_blocks._stacks._queues[3].blocks), 1)

        self.run_in({"torch": fake_torch(3), "cupy": fake_cupy(3)}, body)

    def test_without_a_framework_the_error_says_what_to_do(self):
        def body():
            with self.assertRaisesRegex(RuntimeError, "say stream="), xsched.priority(10):
                pass
            with self.assertRaisesRegex(RuntimeError, "import PyTorch or CuPy first"):
                xsched.stream(priority=3)

        self.run_in({}, body)
        self.run_in({"torch": fake_torch(3, available=False)}, body)

    def test_a_new_stream_has_its_hints_for_good(self):
        def body():
            self.assertEqual(xsched.stream(priority=3).cuda_stream, 8)
            self.assertEqual(self.library.priority(8), 3)
            with xsched.priority(10, stream=8):
                pass
            self.assertEqual(self.library.priority(8), 3)
            self.assertEqual(int(xsched.stream(framework="cupy", weight=300)), 9)
            self.assertEqual(self.library.present[9, "Weight"], (300,))
            self.assertEqual(xsched.torch.stream(priority=5), ("block of", 8))
            self.assertEqual(int(xsched.cupy.stream(6)), 9)
            for wrong in ({"color": 3}, {"priority": 3, "color": 3}):
                with self.assertRaises(TypeError):
                    xsched.stream(**wrong)
            with self.assertRaises(ValueError):
                xsched.stream(priority=3, framework="abacus")

        self.run_in({"torch": fake_torch(3, new=8), "cupy": fake_cupy(4, new=9)}, body)

    def test_a_new_stream_without_a_hint_has_the_priority_of_the_process(self):
        def body():
            for text, priority in (("10", 10), (" +10", 10), ("-256", -256), ("256", 0), ("1O", 0), ("1_0", 0), ("10 ", 0), ("", 0)):
                with self.subTest(text), mock.patch.dict(os.environ, XSCHED_AUTO_XQUEUE_PRIORITY=text):
                    self.library.present[8, "Priority"] = (77,)  # set by the former user of this stream of PyTorch's pool
                    xsched.stream()
                    self.assertEqual(self.library.priority(8), priority)
                    self.library.present[8, "Priority"] = (77,)
                    xsched.torch.stream()
                    self.assertEqual(self.library.priority(8), priority)
            with mock.patch.dict(os.environ, XSCHED_AUTO_XQUEUE_PRIORITY="10"):
                xsched.stream(priority=0)
            self.assertEqual(self.library.priority(8), 0)

        self.run_in({"torch": fake_torch(3, new=8)}, body)

    def test_nothing_is_kept_of_streams_that_are_gone(self):
        def body():
            numbers = iter(range(1, 1001))
            sys.modules["cupy"].cuda.Stream = lambda non_blocking: Stream(next(numbers))
            for _ in range(999):
                xsched.cupy.stream(priority=10)
            last = xsched.cupy.stream(priority=10)
            gc.collect()
            self.assertEqual(int(last), 1000)
            self.assertEqual(hint_blocks._stacks._queues, {})

        self.run_in({"cupy": fake_cupy(4)}, body)

    def test_importing_the_package_imports_no_framework(self):
        program = "import sys, xsched; xsched.torch, xsched.cupy, xsched.jax.hints, xsched.compat.XSched; sys.exit(bool({'torch', 'cupy', 'jax'} & sys.modules.keys()))"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
