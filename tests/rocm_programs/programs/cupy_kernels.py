# /// script
# requires-python = ">=3.11"
# dependencies = ["cupy-rocm-7-0==14.2.0", "numpy==2.3.5"]
# [tool.xsched.env]
# ROCM_HOME = "{folder}"
# [tool.xsched.absent]
# "libhipblas.so.3" = "hipblas"
# "libhiprand.so.1" = "hiprand"
# "libhipsparse.so.4" = "hipsparse"
# "librccl.so.1" = "nccl"
# "librocblas.so.5" = "rocblas"
# "librocsolver.so.0" = "rocsolver"
# "libroctracer64.so.4" = "roctracer"
# "libroctx64.so.4" = "roctx"
# ///
"""CuPy: kernels of its own and of ours, copies and events on two streams, and a graph."""
import cupy
import numpy

SOURCE = 'extern "C" __global__ void scale(float* x, float by) { x[blockIdx.x * blockDim.x + threadIdx.x] *= by; }'
LENGTH = 1024

scale = cupy.RawKernel(SOURCE, "scale")
first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
done = cupy.cuda.Event()
numbers = numpy.arange(LENGTH, dtype=numpy.float32)
for i in range(100):
    with first:
        here = cupy.asarray(numbers)
        scale((LENGTH // 64,), (64,), (here, numpy.float32(i)))
        done.record(first)
    second.wait_event(done)
    with second:
        there = cupy.empty_like(here)
        there.data.copy_from_device_async(here.data, here.nbytes, second)
        scale((LENGTH // 64,), (64,), (there, numpy.float32(2)))
        back = there.get(stream=second)
    second.synchronize()
print("copied back", back[:3], back.sum())

with first:
    first.begin_capture()
    for i in range(5):
        scale((LENGTH // 64,), (64,), (here, numpy.float32(i)))
    graph = first.end_capture()
    for _ in range(50):
        graph.launch(first)
first.synchronize()
print("graph launched", cupy.cuda.runtime.runtimeGetVersion())
