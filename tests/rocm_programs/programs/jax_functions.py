# /// script
# requires-python = ">=3.12"
# dependencies = [
#   "jax==0.12.0", "jaxlib==0.12.0", "jax-rocm7-pjrt==0.12.0", "jax-rocm7-plugin==0.12.0", "ml_dtypes==0.6.0", "numpy==2.3.5",
#   "opt_einsum==3.4.0", "scipy==1.18.1",
# ]
# [tool.xsched]
# large = true
# [tool.xsched.env]
# JAX_PLATFORMS = "rocm"
# [tool.xsched.compiled]
# "librocprofiler-sdk.so.1" = "rocprofiler_sdk.c"
# [tool.xsched.absent]
# "libMIOpen.so.1" = "miopen"
# "libamd_smi.so.26" = "amdsmi"
# "libhipblas.so.3" = "hipblas"
# "libhipblaslt.so.1" = "hipblaslt"
# "libhipsolver.so.1" = "hipsolver"
# "libhipsparse.so.4" = "hipsparse"
# "librccl.so.1" = "nccl"
# "librocblas.so.5" = "rocblas"
# "librocm_sysdeps_drm.so.2" = "drm"
# "librocm_sysdeps_drm_amdgpu.so.1" = "amdgpu_"
# "librocm_sysdeps_numa.so.1" = "numa_"
# "librocsolver.so.0" = "rocsolver"
# ///
"""JAX with AMD's plugin: compiled functions, a loop and random numbers. The plugin opens a profiler for itself (RTLD_LOCAL)."""
import jax
import jax.numpy as jnp
import numpy
from jax._src import hardware_utils

# It looks for /dev/kfd.
hardware_utils.num_available_amd_gpus = lambda stop_at=None: 1


@jax.jit
def wave(x):
    return jnp.sin(x) * 2 + 1


@jax.jit
def loop(x):
    def step(carry, _):
        return jnp.tanh(carry) * 1.1 + jnp.roll(carry, 1), carry.sum()

    return jax.lax.scan(step, x, None, length=8)


print(jax.__version__, len(jax.devices()), jax.devices()[0].platform)
x = jax.device_put(numpy.ones(1000, numpy.float32))
for _ in range(300):
    x = wave(x)
carry, sums = jax.block_until_ready(loop(x))
key = jax.block_until_ready(jax.random.normal(jax.random.PRNGKey(0), (64,)))
print(carry.shape, sums.shape, key.shape)
