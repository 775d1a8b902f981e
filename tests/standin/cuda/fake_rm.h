// A resource manager for tests: answers the ioctls of any open file, in this process. Preload libfake_rm.so
// behind what is tested, and name any file in STANDIN_CUDA_CONTROL. Time slices and scheduling of the compute
// group act on the stand-in's device.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Control `command` (0xa06c0103, …) answers `status` from now on; 0 takes that back.
void fake_rm_answer(uint32_t command, uint32_t status);
// How often `command` was asked; its last time, as a number that grows with every control (0: never); and how
// many objects of `object_class` there are.
uint64_t fake_rm_controls(uint32_t command);
uint64_t fake_rm_objects(uint32_t object_class);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
