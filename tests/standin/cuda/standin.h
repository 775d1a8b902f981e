// How a test drives the stand-in, beside the driver API itself. Functions are named as exported
// ("cuMemAlloc_v2", "cuLaunchKernel_ptsz"). A test that must run over a real driver as well looks these up
// with dlsym.
//
// Environment, read by cuInit:
//   STANDIN_CUDA_DEVICES=2                number of devices (1)
//   STANDIN_CUDA_VERSION=12080            what cuDriverGetVersion says (the header's version)
//   STANDIN_CUDA_MEMORY_MB=64             memory of a device (1024)
//   STANDIN_CUDA_KERNEL_US=10             how long a kernel runs that does not say so itself (0)
//   STANDIN_CUDA_SHARED=DIR               devices are shared with the other processes that name this folder
//   STANDIN_CUDA_TIMESLICE_US=2000        how long this process runs while others want the device
//   STANDIN_CUDA_IMMEDIATE=1              commands that wait for nothing run inside the call
//   STANDIN_CUDA_FAIL=cuLaunchKernel:3:2  the 3rd call from now returns error 2 (also a list, by commas)
//   STANDIN_CUDA_SLOW=cuMemAlloc_v2:1000  each call takes 1000 us longer (also a list, by commas)
//   STANDIN_CUDA_CONTROL=FILE             the control device of the resource manager (rm.cc); unset: none
//   STANDIN_CUDA_WITHOUT=stream_depth     rules of rules.h that are off (also a list, by commas)
//   CUDA_VISIBLE_DEVICES                  indices or "GPU-<uuid>", as the real driver reads it
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// How often `function` was called since the start; 0 for a name that does not exist.
uint64_t standin_calls(const char* function);
// How many calls reached a function that is not implemented, and the last of them (null: none).
uint64_t standin_unsupported_calls(void);
const char* standin_last_unsupported(void);

// Faults. The `nth` call from now (1: the next) returns `error` and does nothing; 0 takes the fault back.
void standin_fail(const char* function, uint64_t nth, int error);
void standin_slow(const char* function, uint64_t extra_ns);
// The contexts of device `ordinal` are lost: what is in flight is dropped, every call returns `error` until
// they are destroyed.
void standin_lose_contexts(int ordinal, int error);
// The same for one context, by its handle.
void standin_lose_context(void* context, int error);

// The device.
void standin_set_kernel_time(uint64_t ns);
void standin_set_immediate(int on);
// What level 3 acts on: this process's share of a device that several processes want, and whether it runs at
// all. A kernel that is stopped goes on where it was.
void standin_set_timeslice(int ordinal, uint64_t us);
uint64_t standin_timeslice(int ordinal);
void standin_set_scheduled(int ordinal, int on);
int standin_scheduled(int ordinal);
// Time that kernels of this process have run on the device.
uint64_t standin_busy_ns(int ordinal);
// Commands that the device has not finished yet, over all streams.
uint64_t standin_pending(int ordinal);
// The priority by which the device runs a stream of the program's own; 99: there is no such stream.
int standin_stream_priority(void* stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
