// How a test drives the stand-in of AMD's kernel driver and GPUs. Preload or link libstandin_amdgpu.so: AMD's
// own libhsa-runtime64 then finds GPUs of the type MI308X (gfx942). rules.h says what they do.
//
// Environment:
//   STANDIN_AMDGPU_MACHINE=FOLDER   the machine's files (machine.py); by default one with two GPUs
//
// A kernel does what the test has set for its name, and nothing otherwise: instructions are not run.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// The kernel as a function. It runs to its end even if its queue is suspended meanwhile, but its completion
// is seen only when the queue is active again. `packet`: hsa_kernel_dispatch_packet_t. Null removes it.
typedef void (*standin_amdgpu_function)(const void* arguments, const void* packet);
void standin_amdgpu_set_kernel(const char* kernel, standin_amdgpu_function function);

// The kernel as a wave that can be taken off at any step. All that it keeps is `state`, which is zero at
// first: when the queue is suspended, it is saved to the queue's save area, and forgotten elsewhere. Returns
// 0 when the wave has ended.
#define STANDIN_AMDGPU_STATE_SIZE 256
typedef int (*standin_amdgpu_step)(void* state, const void* arguments);
void standin_amdgpu_set_wave(const char* kernel, standin_amdgpu_step step);

// Kernels that have begun, under the name that they have in the code object; null: all.
uint64_t standin_amdgpu_dispatches(const char* kernel);
// Waves that have been saved, and restored.
uint64_t standin_amdgpu_saves(void);
uint64_t standin_amdgpu_restores(void);

// Queues that run packets, without those that copy (SDMA): how many there are, and how many are active.
uint32_t standin_amdgpu_queues(void);
uint32_t standin_amdgpu_active_queues(void);
// Is queue `id` active? 0 as well where there is none.
int standin_amdgpu_active(uint32_t id);
// Where the wave of an inactive queue is saved: in the area that the program has made with the queue. Null:
// no wave is.
const void* standin_amdgpu_saved_wave(uint32_t id);

// What a request that is to fail does.
enum {
  kStandinAmdgpuRefuse = 0,       // nothing
  kStandinAmdgpuTakesEffect = 1,  // what was asked for; but it reports the error
};
// The `nth` request from now (1: the next) of this number (2: create, 3: destroy, 7: update) fails with
// `error`; so do `count` - 1 after it. nth 0: none does any more.
void standin_amdgpu_fail(unsigned request, int nth, int count, int error, int how);

// The requests about queues since the last call, a line for each:
//   "create 1: gpu 1000, type 2, 100 %, priority 7, ring 7f..+4000"
//   "update 1: 0 %, priority 7, ring 7f..+4000"   "update 1 fails: 16"   "destroy 1"
// Returns the number of characters, cut to `size`.
size_t standin_amdgpu_take_record(char* text, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
