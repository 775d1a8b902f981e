"""Kernels of a settable length, launched by PyTorch: the same program for every platform that it is built for.

The kernel is the incomplete gamma function of so many numbers: some hundred steps for each, so that its length follows their
count and memory does not bound it; it fills the device; and it is a kernel of PyTorch's own, so nothing is compiled.
"""
import time

import torch


class _Work:
    def __init__(self, elements):
        self.output = torch.empty(elements, device="cuda")
        # 10 and 9: where the function is a series of some 25 terms.
        self.shape = torch.full((1,), 10.0, device="cuda").expand(elements)
        self.point = torch.full((1,), 9.0, device="cuda").expand(elements)

    def launch(self):
        torch.igamma(self.shape, self.point, out=self.output)


class KernelJob:
    """A step is `kernels` kernels of `kernel_us` each. `elements_per_us`: of calibrate()."""

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
    """Elements of a kernel per microsecond of its length, on a device that nothing else uses."""
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
