"""Kernels of a settable length, launched by PyTorch: the same program on every platform of PyTorch.

The kernel is the incomplete gamma function of many numbers. Each takes some hundred steps. So the kernel's length is proportional to
their count, memory does not bound it, and it fills the device. It is PyTorch's own kernel, so nothing is compiled.
"""
import time

import torch


class _Work:
    def __init__(self, elements):
        self.output = torch.empty(elements, device="cuda")
        # With 10 and 9, the function is a series of about 25 terms.
        self.shape = torch.full((1,), 10.0, device="cuda").expand(elements)
        self.point = torch.full((1,), 9.0, device="cuda").expand(elements)

    def launch(self):
        torch.igamma(self.shape, self.point, out=self.output)


class KernelJob:
    """A step is `kernels` kernels of `kernel_us` each. `elements_per_us` comes from calibrate()."""

    def __init__(self, kernel_us, elements_per_us, kernels=1):
        self.batch = kernels
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            self.work = _Work(max(1, int(kernel_us * elements_per_us)))
            self.run()
            self.stream.synchronize()

    def run(self):
        for _ in range(self.batch):
            self.work.launch()


def calibrate():
    """Elements of a kernel per microsecond of its length, measured on an idle device."""
    elements, kernels = 1 << 16, 20
    while True:
        work = _Work(elements)
        best = min(_microseconds(work, kernels) for _ in range(5))
        if best >= 1000:
            return elements / best
        elements *= 2 if best < 100 else 1.5
        elements = int(elements)


def _microseconds(work, kernels):
    torch.cuda.synchronize()
    begin = time.monotonic()
    for _ in range(kernels):
        work.launch()
    torch.cuda.synchronize()
    return (time.monotonic() - begin) / kernels * 1e6
