# /// script
# requires-python = ">=3.12"
# [tool.xsched]
# gpus = ["gfx90a", "gfx942"]
# folders = ["build/hip/triton", "tests/hip/torch_for_triton"]
# [tool.xsched.env]
# TRITON_LIBHIP_PATH = "{runtime}"
# ///
"""Triton's AMD backend compiles an addition and a product of matrices. Its launcher keeps Python's lock."""
import torch
import triton
import triton.language as tl

LENGTH = 4096
SIZE = 128


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def multiply(a, b, c, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, STEP)
    sum = tl.zeros((ROWS, COLUMNS), tl.float32)
    for begin in range(0, k, STEP):
        left = tl.load(a + row[:, None] * k + (begin + step)[None, :])
        sum += tl.dot(left, tl.load(b + (begin + step)[:, None] * n + column[None, :]))
    tl.store(c + row[:, None] * n + column[None, :], sum)


print(triton.runtime.driver.active.get_current_target())
x, y, out = (torch.Tensor(LENGTH) for _ in range(3))
a, b, c = (torch.Tensor(SIZE * SIZE) for _ in range(3))
for _ in range(300):
    add[(triton.cdiv(LENGTH, 256),)](x, y, out, LENGTH, BLOCK=256)
    kernel = multiply[(SIZE // 64, SIZE // 64)](a, b, c, SIZE, SIZE, ROWS=64, COLUMNS=64, STEP=32)
torch.cuda.synchronize()
print(kernel.metadata.name, kernel.metadata.shared, kernel.n_regs, kernel.n_spills)
