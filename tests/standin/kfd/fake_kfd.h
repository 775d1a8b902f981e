// AMD's kernel driver for compute, for tests: /dev/kfd and its GPUs in /sys, through the C library's open and
// ioctl. Preload libfake_kfd.so behind the tested libraries, or link it. If it is there, the software HSA
// agent makes its queues here, and runs nothing of an inactive one.
//
// GPU i is on bus 5 + i, as the agent's.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Is queue `id` active? 0 as well where there is none.
int fake_kfd_active(uint32_t id);
// Returns when queue `id` is active. 0: there is none.
int fake_kfd_await_active(uint32_t id);
// How many queues there are, and how many of them are active.
uint32_t fake_kfd_queues(void);
uint32_t fake_kfd_active_queues(void);
// The `nth` request from now (1: the next) that changes a queue fails with `error`. 0: none does any more.
void fake_kfd_fail_update(int nth, int error);
// The requests about queues since the last call, a line for each: "update 1: 0 %, priority 7, ring 1000+40".
// Returns the number of characters, cut to `size`.
size_t fake_kfd_take_record(char* text, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
