// What a platform's HAL implements for each hardware queue, and what it may call back. A C table, because
// HALs live in libraries of their own (libhal<platform>.so) and no C++ crosses library borders here.
//
// Rules for a HAL:
//  - It calls the driver's real functions, of the instance of the runtime that made the queue.
//  - No function here is called with a lock of XSched's held that a driver's callback could need.
//  - It needs no thread of its own.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XSCHED_PRIVATE \
  __attribute__((visibility("default"))) /* exported as XSCHED_PRIVATE: between our libraries only */

// The words of a queue's control block (ipc/control_block.h) that a device reads and writes by itself.
typedef struct XControlWords {
  void* memory;  // the mapping that holds them, page-aligned: what a driver must be told of
  size_t memory_size;
  uint32_t* gate;  // the device goes on while (*gate & gate_mask) != 0 …
  uint32_t gate_mask;
  uint32_t* pause;   // … and then, unless null, while *pause == 0;
  uint64_t* passed;  // null with it: and then reports here that it went through
  uint64_t* retired;
} XControlWords;

// What holds back the commands of a queue (level 1).
typedef enum XGating {
  // Nothing in the driver: the launching thread waits while the queue is held or full.
  kGatingCallerWaits = 0,
  // Gates in the driver's queue that the host opens.
  kGatingHostGates = 1,
  // Gates in the driver's queue at which the device waits by itself, by reading the control block.
  kGatingDeviceGates = 2,
} XGating;

typedef struct XHwQueueOps {
  size_t size;  // sizeof(XHwQueueOps) of the HAL's build
  XPlatform platform;
  XPreemptLevel max_level;  // of this kind of queue
  XGating gating;           // says which of the following functions are used

  // ---- Host gates ----
  // Enqueues a gate: commands enqueued later do not start before open_gate(gate). Must not block.
  XResult (*append_gate)(void* hwq, uint64_t* gate);
  // Called exactly once per gate, in order, from any thread. Also releases the gate.
  void (*open_gate)(void* hwq, uint64_t gate);

  // ---- Host gates; caller waits ----
  // Enqueues a marker: when everything enqueued so far has finished (or failed), HwQueueRetired(ticket) is
  // called once, from any thread, a callback of the driver's included. Must not block. Failure: never called.
  // Null: the driver has no markers. Host gates need them.
  XResult (*append_marker)(void* hwq, uint64_t ticket);

  // ---- Caller waits ----
  // Where a driver does not report by itself: looks for markers that have been reached, and calls
  // HwQueueRetired for each, in order. append_marker is then called by the launching thread only. From any
  // thread; must not block. Null: the driver reports.
  void (*poll_markers)(void* hwq);

  // ---- Device gates ----
  // Enqueues: `number` is written to words->retired when all before has finished; then the device waits, as
  // the words say, before what comes next. Called by the launching thread. Must not block.
  XResult (*append_device_gate)(void* hwq, const XControlWords* words, uint64_t number);
  // Enqueues the report alone.
  XResult (*append_progress)(void* hwq, const XControlWords* words, uint64_t number);

  // Has all that is enqueued finished? Must not block. For device gates and polled markers. Null: only the
  // launching thread may ask the driver, so that every command of a tracked queue reports.
  bool (*finished)(void* hwq);

  // ---- Urgency within the process ----
  // The queue is so many steps more urgent than the least urgent of the process's queues on the device; 0: as
  // the program made it. Only remembered. From any thread, one call at a time.
  void (*note_urgency)(void* hwq, int steps);
  // Where both could run, the device is to prefer the more urgent queue, as far as it can; among equals the
  // program's own order stays. Called when what was noted of any queue has changed. From any thread, one call
  // at a time; the HAL opens gates (preempt::Barrier) around what may wait for them. kXSchedErrorNotAllowed:
  // not now. Null, both: the device makes no difference.
  XResult (*apply_urgency)(void* hwq);

  // Submits what is enqueued to the device, where a driver holds it back (clFlush). Null: not needed.
  void (*flush)(void* hwq);
  // Blocks until everything enqueued has finished.
  XResult (*synchronize)(void* hwq);

  // ---- Levels 2 and 3; null where max_level is lower ----
  XResult (*deactivate)(void* hwq);  // launched commands that have not started do not start
  XResult (*reactivate)(void* hwq);
  // The running command stops; without a deactivate: all of the process stops on the queue's device.
  XResult (*interrupt)(void* hwq);
  // … and goes on where it stopped. An error: it does not yet, and this is to be called again. A HAL that
  // tries again by itself (XProcessOps::settle) reports success.
  XResult (*restore)(void* hwq);
  bool deactivate_interrupts;  // deactivate stops the running command as well
  bool time_slices;  // at level 3 the device divides its time between this process and others (XProcessOps)

  // The queue keeps itself alive between these two while XSched still has work in it (the program let it go).
  // Null: no need.
  void (*retain)(void* hwq);
  void (*release)(void* hwq);
  // The HwQueue is being destroyed; frees `hwq`. All gates are open, no call is under way.
  void (*destroy)(void* hwq);
} XHwQueueOps;

typedef struct XHwQueueInfo {
  XDevice device;           // the same number in every process that uses this device
  const char* device_name;  // for people; copied
  uint64_t key;  // the driver's handle (cl_command_queue, CUstream, …): one HwQueue per key and platform
  // What some calls of the driver wait for as a whole (a CUDA context); 0: there are no such calls.
  uint64_t context;
} XHwQueueInfo;

// Registers a hardware queue. kXSchedErrorNotAllowed: `key` is registered already; *out is then that queue's
// handle. kXSchedErrorInvalidValue: a function that `gating` needs is missing.
XSCHED_PRIVATE XResult HwQueueRegister(const XHwQueueOps* ops, void* hwq, const XHwQueueInfo* info,
                                       HwQueueHandle* out);
// The handle of the queue registered for `key`; 0: none.
XSCHED_PRIVATE HwQueueHandle HwQueueFind(XPlatform platform, uint64_t key);
// The HAL's pointer for a handle; null if it is none, or another platform's.
XSCHED_PRIVATE void* HwQueueImpl(HwQueueHandle handle, XPlatform platform);
// A marker has been reached. Async-signal-unsafe, but never blocks on a driver and never calls one.
XSCHED_PRIVATE void HwQueueRetired(uint64_t ticket);

// XProcessOps::set_slice: not at all, until it is set anew.
#define kSliceNone UINT64_MAX

// Level 3 for a whole process, where a device's own scheduler divides its time between processes.
typedef struct XProcessOps {
  size_t size;
  // The process keeps `device` for `slice_us` at a stretch while others want it; 0: for as long as its driver
  // has it by default. May take a millisecond, and never calls the driver's library. The HAL says why, should
  // it fail; it may have taken effect all the same, and is called again until it succeeds.
  XResult (*set_slice)(XDevice device, uint64_t slice_us);
  // Does again what a driver has undone. Called now and then; costs nothing when there is nothing to do.
  void (*refresh)(void);
  // As refresh; also tries again what could not be given back. True: everything is as it was last asked for.
  bool (*settle)(void);
} XProcessOps;
XSCHED_PRIVATE void ProcessOpsRegister(const XProcessOps* ops);

// A command that a HAL makes for XQueueSubmit and HwQueueLaunch.
typedef struct XHwCommandOps {
  size_t size;
  XPlatform platform;  // kPlatformUnknown: fits every queue
  XResult (*launch)(void* command, HwQueueHandle queue);
  void (*destroy)(void* command);
} XHwCommandOps;
XSCHED_PRIVATE XResult HwCommandRegister(const XHwCommandOps* ops, void* command, HwCommandHandle* out);

#ifdef __cplusplus
}
#endif
