// How a test controls the fake HIP runtime, in addition to HIP's own functions. Tests look the functions up
// in the instance that they loaded.
#pragma once

#include <stdint.h>

#include "hal/hip/hip_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// Puts a command on the stream, as a kernel launch does. Null: the current device's default stream.
hipError_t FakeLaunch(hipStream_t stream);
// Lets the next `count` commands of the stream finish.
void FakeFinish(hipStream_t stream, uint64_t count);
// From now on commands finish at once.
void FakeFinishAtOnce(void);
// Commands put on the stream so far.
uint64_t FakeLaunched(hipStream_t stream);
// From now on the stream captures, or does not. An error: the capture that ended was invalid.
hipError_t FakeCapture(hipStream_t stream, int capturing);
// True if a call about a capturing stream was made that invalidates the capture.
int FakeSpoiled(void);
// From now on hipRuntimeGetVersion says this.
void FakeSetVersion(int version);
// How often a call by the handle 0 has made the null stream wait for blocking streams, and these for it.
int FakeNullWaits(void);
// The end of the process goes on a while after the runtime's objects have ended. A call crashes then.
void FakeEndSlowly(void);
// Default streams of threads that were made.
int FakeThreadStreams(void);
// Events that were recorded on a thread's default stream, and still there when the thread's end destroyed it.
int FakeOrphans(void);
// Events made and not destroyed; calls of any function so far.
int FakeEvents(void);
uint64_t FakeCalls(void);

#ifdef __cplusplus
}
#endif
