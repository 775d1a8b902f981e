// A resource manager for tests: answers the ioctls of any open file, in this process. Preload libfake_rm.so
// behind the tested libraries, and name any file in STANDIN_CUDA_CONTROL. Time slices and scheduling of the
// compute group act on the stand-in's device. Each control takes 0.3 ms.
//
// Environment, read at the first request; CONTROL as for fake_rm_fault:
//   FAKE_RM_TIME_US=0                     how long each control takes
//   FAKE_RM_REFUSE=disable:3              every 3rd call is refused; also a comma-separated list
//   FAKE_RM_TIME_OUT=disable:2,enable:1   every 2nd (every) call takes effect and reports a time-out
//   FAKE_RM_BLOCK=set_timeslice:50000     each call takes 50000 us longer
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Control `command` (0xa06c0103, …) answers `status` from now on; 0 takes that back.
void fake_rm_answer(uint32_t command, uint32_t status);
// Faults of `control`: "disable" and "enable" (of channels), "set_timeslice", "get_timeslice", or a number as
// "0xa06c0105". `fault`: "refuse" and "time_out" concern every `n`th call from now on (0: none); "block"
// makes each call take `n` us longer. False: one of the names is unknown.
bool fake_rm_fault(const char* fault, const char* control, uint64_t n);
// How often `command` was asked; its last time, as a number that grows with every control (0: never); and how
// many objects of `object_class` there are.
uint64_t fake_rm_controls(uint32_t command);
uint64_t fake_rm_objects(uint32_t object_class);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
