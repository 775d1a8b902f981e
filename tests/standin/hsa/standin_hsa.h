// How a test drives the software HSA agent, beside HSA itself. A test that must run over AMD's
// libhsa-runtime64 as well looks these up with dlsym.
//
// Environment, read by the first hsa_init:
//   STANDIN_HSA_DEVICES=2               number of GPUs (1)
//   STANDIN_HSA_ISA=gfx942              their architecture (gfx90a)
//   STANDIN_HSA_MEMORY_MB=64            memory of each (16384)
//   STANDIN_HSA_KERNEL_US=10            how long unknown kernels run (0)
//   STANDIN_HSA_FAIL=hsa_queue_create:2:4104   the 2nd call from now returns status 4104; a list by commas
//   STANDIN_HSA_LOG=FILE                a line for each kernel that begins: "<GPU> <queue> <kernel>"
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// How often `function` ("hsa_queue_create") was called since the start.
uint64_t standin_hsa_calls(const char* function);
// The `nth` call from now (1: the next) returns `status` and does nothing; 0 takes the fault back.
void standin_hsa_fail(const char* function, uint64_t nth, int status);

// Kernels that have run, under the name that they have in the code object; null: all.
uint64_t standin_hsa_dispatches(const char* kernel);
// Hardware queues that there are now.
uint64_t standin_hsa_queues(void);
// The queue that the last kernel ran on, numbered from 1 in the order of their creation; 0: none has.
uint64_t standin_hsa_last_queue(void);

// Returns when no handler of a signal is due or runs. If handlers run while the program ends, ROCm 7's HIP
// sometimes crashes, so tests wait for them first.
void standin_hsa_await_handlers(void);

// Sets what `kernel` does. The function is called on the queue's own thread, with the kernel's arguments in
// the kernarg segment and with the AQL packet (hsa_kernel_dispatch_packet_t). It replaces the former one;
// null removes it.
typedef void (*standin_hsa_kernel_function)(const void* arguments, const void* packet);
void standin_hsa_set_kernel(const char* kernel, standin_hsa_kernel_function function);
void standin_hsa_set_kernel_time(uint64_t ns);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
