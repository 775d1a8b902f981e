"""Triton itself, unmodified, with its AMD backend: it compiles a kernel for gfx90a, and launches it over AMD's runtime and the software
agent, where it does nothing. Its launcher keeps Python's lock."""
import ctypes
import os
import threading
import time
import unittest

import torch
import triton
import triton.language as tl

from xsched import XSchedQueue

hsa = ctypes.CDLL("libhsa-runtime64.so.1")


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def runs():
    return hsa.standin_hsa_dispatches(b"add_kernel")


def tearDownModule():
    hsa.standin_hsa_await_handlers()


class Triton(unittest.TestCase):
    def setUp(self):
        self.tensor = torch.Tensor(256)
        # Compiled now.
        self.launch()
        torch.cuda.synchronize()
        self.before = runs()

    def launch(self):
        add_kernel[(1,)](self.tensor, self.tensor, self.tensor, 256, BLOCK=256)

    def test_a_launch_is_one_command(self):
        with XSchedQueue(torch.cuda.current_stream().cuda_stream) as queue:
            commands = queue.command_count
            for _ in range(3):
                self.launch()
            self.assertEqual(queue.command_count, commands + 3)
        torch.cuda.synchronize()
        self.assertEqual(runs(), self.before + 3)

    def test_while_a_launch_is_held_other_threads_go_on(self):
        with XSchedQueue(torch.cuda.current_stream().cuda_stream) as queue:
            with queue.held():
                launcher = threading.Thread(target=self.launch)
                launcher.start()
                begin = time.monotonic()
                launcher.join(0.05)
                self.assertLess(time.monotonic() - begin, 10)
                self.assertTrue(launcher.is_alive())
                self.assertEqual(runs(), self.before)
            launcher.join()
        torch.cuda.synchronize()
        self.assertEqual(runs(), self.before + 1)

    def test_a_program_that_is_held_50_times_a_second_launches_all_its_kernels(self):
        launches = 0
        enough = threading.Event()

        def launch_all():
            nonlocal launches
            while not enough.is_set():
                self.launch()
                launches += 1

        with XSchedQueue(torch.cuda.current_stream().cuda_stream) as queue:
            launcher = threading.Thread(target=launch_all)
            launcher.start()
            for _ in range(25):
                with queue.held():
                    time.sleep(0.01)
                time.sleep(0.01)
            enough.set()
            launcher.join()
        torch.cuda.synchronize()
        self.assertGreater(launches, 25)
        self.assertEqual(runs(), self.before + launches)


if __name__ == "__main__":
    unittest.main()
