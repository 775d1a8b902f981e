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

/* Exported from one of our libraries to the others, as XSCHED_PRIVATE (cmake/private.map). */
#define XSCHED_PRIVATE __attribute__((visibility("default")))

// The words of a queue's control block (ipc/control_block.h) that a device reads and writes by itself.
typedef struct XControlWords {
  void* memory;  // the page-aligned mapping that contains them, which a driver must register
  size_t memory_size;
  uint32_t* gate;  // the device waits while (*gate & gate_mask) == 0
  uint32_t gate_mask;
  uint32_t* pause;   // unless null: after that, the device waits while *pause != 0
  uint64_t* passed;  // unless null: after these, it writes here that it has passed. Never null beside `pause`
  uint64_t* retired;  // null: a gate that does not report
} XControlWords;

// How the commands of a queue are held (level 1).
typedef enum XGating {
  // Without the driver: the launching thread waits while the queue is held or full.
  kGatingCallerWaits = 0,
  // Gates in the driver's queue that the host opens.
  kGatingHostGates = 1,
  // Device-side gates in the driver's queue: the device itself waits there, and reads the control block.
  kGatingDeviceGates = 2,
} XGating;

typedef struct XHwQueueOps {
  size_t size;  // sizeof(XHwQueueOps) of the HAL's build
  XPlatform platform;
  XPreemptLevel max_level;  // the highest of this kind of queue
  XGating gating;           // decides which of the following functions are used

  // ---- Host gates ----
  // Enqueues a gate: commands enqueued later do not start before open_gate(gate). Must not block.
  XResult (*append_gate)(void* hwq, uint64_t* gate);
  // Called once per gate, in order, from any thread. Also releases the gate, unless it fails: then it is
  // called again, and gates behind this one stay closed.
  XResult (*open_gate)(void* hwq, uint64_t gate);

  // ---- Host gates; caller waits ----

  // Enqueues a marker. When everything enqueued so far has finished or failed, HwQueueRetired(ticket) is
  // called once, from any thread, also from a callback of the driver. If append_marker fails, it is never
  // called. Must not block. Null: the driver has no markers. Host gates need them.
  XResult (*append_marker)(void* hwq, uint64_t ticket);

  // ---- Caller waits ----

  // For drivers that do not report markers: finds the markers that have been reached, and calls
  // HwQueueRetired for each, in order. Then only the launching thread calls append_marker. From any thread.
  // Must not block. Null: the driver reports.
  void (*poll_markers)(void* hwq);

  // ---- Device gates ----

  // Makes the control blocks visible to the device, so that the first gate or report need not do it: with
  // some drivers it takes up to 2 ms. Called once, by the thread that makes the queue. If it fails, the first
  // gate tries again. May block. Null: there is nothing to do.
  void (*share_memory)(void* hwq, void* memory, size_t size);
  // Enqueues a gate: when all earlier commands have finished, `number` is written to words->retired, unless
  // that is null. Then the device waits, as the words say, before the next command. Called by the launching
  // thread. Must not block.
  XResult (*append_device_gate)(void* hwq, const XControlWords* words, uint64_t number);
  // Enqueues only the report.
  XResult (*append_progress)(void* hwq, const XControlWords* words, uint64_t number);

  // Returns whether nothing of the queue runs or reports any more, because its context has failed. Also
  // called when the program has released the driver's queue, but not when the context is being destroyed.
  // Null: not known.
  bool (*context_lost)(void* hwq);

  // Returns whether everything enqueued has finished. Must not block. For device gates and polled markers.
  // Null: only the launching thread may ask the driver. Then every command of a tracked queue reports.
  bool (*finished)(void* hwq);

  // ---- Urgency within the process ----

  // Remembers by how many steps the queue is more urgent than the least urgent queue of the process on the
  // device. 0: the priority that the program gave it. From any thread, one call at a time.
  void (*note_urgency)(void* hwq, int steps);
  // Makes the device prefer more urgent queues, as far as it can. Equally urgent queues keep the program's
  // own order. Called after note_urgency of any queue. From any thread, one call at a time. The HAL opens
  // gates (preempt::Barrier) around calls that may wait for them. kXSchedErrorNotAllowed: not possible now.
  // Both functions are null if the device has no priorities.
  XResult (*apply_urgency)(void* hwq);

  // Submits the enqueued commands to the device, for drivers that delay this. Null: not needed.
  void (*flush)(void* hwq);
  // Blocks until everything enqueued has finished. kXSchedErrorNotAllowed: this cannot be known now, because
  // the queue is being captured, or because its handle means another queue on this thread.
  XResult (*synchronize)(void* hwq);

  // ---- Levels 2 and 3; null where max_level is lower ----
  XResult (*deactivate)(void* hwq);  // launched commands that have not started do not start
  XResult (*reactivate)(void* hwq);
  // Stops the running command. Without `deactivate`: all of the process on the device and its other parts.
  XResult (*interrupt)(void* hwq);
  // Continues where it stopped. An error: it does not run yet, and this must be called again. A HAL that
  // tries again by itself (XProcessOps::settle) returns success.
  XResult (*restore)(void* hwq);
  bool deactivate_interrupts;  // deactivate stops the running command as well
  bool time_slices;  // at level 3 the device divides its time between this process and others (XProcessOps)
  // A long command of another process does not keep the device from this queue: the device divides its time
  // between processes, whatever the level.
  bool runs_beside_others;

  // Between these two calls the queue stays alive, although the program has released it, because XSched still
  // has work in it. Null: not needed.
  void (*retain)(void* hwq);
  void (*release)(void* hwq);
  // The HwQueue is being destroyed: frees `hwq`. All gates are open, and no other call is in progress.
  void (*destroy)(void* hwq);

  // For polled markers. Returns whether `finished` must not be called at present, because the driver's answer
  // would have effects on the queue. Then every command of a tracked queue is followed by a marker, as where
  // `finished` is null. From any thread. Null: it may always be called.
  bool (*only_launcher_asks)(void* hwq);

  // For device gates. Returns whether append_progress by this thread, which may not be the launching one,
  // would put a report on the queue: not if its handle means another queue here, or if it is being captured.
  // Null: always.
  bool (*takes_reports)(void* hwq);

  // For polled markers. The queue's stream is about to capture, and until that ends the driver must not be
  // asked about the markers: calls HwQueueRetired for each, and asks nothing. From any thread. Null: markers
  // may be polled at any time.
  void (*put_markers_away)(void* hwq);

  // For host gates. Opening one may run commands or code of the program in the calling thread, and may never
  // return. So the agent leaves it to threads of which each opens one queue's gates at a time.
  bool opening_runs_commands;

  // For host gates. The queue runs its commands in any order, so a marker may cost the driver some time for
  // each unfinished command in front of it.
  bool out_of_order;
} XHwQueueOps;

typedef struct XHwQueueInfo {
  XDevice device;           // the same number in every process that uses this device
  const char* device_name;  // for display; copied
  uint64_t key;             // the driver's handle of the queue or stream: one HwQueue per key and platform
  // The unit for which some calls of the driver wait as a whole, such as a context. 0: there are no such
  // calls.
  uint64_t context;
} XHwQueueInfo;

// Registers a hardware queue. kXSchedErrorNotAllowed: `key` is registered already; *out is then that queue's
// handle. kXSchedErrorInvalidValue: a function that `gating` needs is missing.
XSCHED_PRIVATE XResult HwQueueRegister(const XHwQueueOps* ops, void* hwq, const XHwQueueInfo* info,
                                       HwQueueHandle* out);
// What a program gets that creates a queue twice: Success, and the one that there is (as in XSched 1.2).
static inline XResult HwQueueMadeOrFound(XResult registered) {
  return registered == kXSchedErrorNotAllowed ? kXSchedSuccess : registered;
}
// The handle of the queue registered for `key`; 0: none.
XSCHED_PRIVATE HwQueueHandle HwQueueFind(XPlatform platform, uint64_t key);
// The HAL's pointer for a handle. Null: it is no handle, or one of another platform.
XSCHED_PRIVATE void* HwQueueImpl(HwQueueHandle handle, XPlatform platform);
// A marker has been reached. Not async-signal-safe. It never calls a driver and never waits for one.
XSCHED_PRIVATE void HwQueueRetired(uint64_t ticket);

// XProcessOps::set_slice: not at all, until it is set anew.
#define kSliceNone UINT64_MAX

// Level 3 for a whole process, where a device's own scheduler divides its time between processes.
typedef struct XProcessOps {
  size_t size;
  // The process keeps `device` for `slice_us` at a stretch while others want it. 0: for the driver's own
  // slice. May take a millisecond, and never calls the driver's library. If it fails, the HAL logs why. It
  // may have taken effect nevertheless, and is called again until it succeeds.
  XResult (*set_slice)(XDevice device, uint64_t slice_us);
  // Does again what a driver has undone. Called from time to time. Costs nothing if there is nothing to do.
  void (*refresh)(void);
  // As refresh, and also tries again to give back what could not be given back. True: everything is as
  // requested.
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
