# /// script
# requires-python = ">=3.11"
# dependencies = ["tinygrad==0.14.0", "numpy==2.3.5"]
# [tool.xsched.env]
# DEV = "HIP"
# HIP_PATH = "{runtime}"
# ///
"""tinygrad multiplies matrices, step by step and by its JIT."""
from tinygrad import Device, Tensor, TinyJit

SIZE = 64


@TinyJit
def product(matrix):
    return (matrix @ matrix).relu().realize()


a, b = Tensor.rand(SIZE, SIZE).realize(), Tensor.rand(SIZE, SIZE).realize()
print(Device.DEFAULT, (a @ b + 1).relu().sum().realize().shape)
for _ in range(300):
    result = product(Tensor.rand(SIZE, SIZE).realize())
Device[Device.DEFAULT].synchronize()
print(result.numpy().shape)
