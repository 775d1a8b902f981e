// The program's command buffers (cl_khr_command_buffer), and the queues that they were made for. A launch
// that names no queue is on these. The driver is asked only for buffers whose creation we did not see,
// because PoCL 3.1 gives a wrong answer.
#pragma once

#include "shim/opencl/call.h"
#include "shim/opencl/records.h"

namespace xsched::opencl {

inline constexpr cl_uint kMaxRecordedQueues = 8;  // on more, a recording is launched unscheduled

struct Recording : CountedRecord<Recording> {
  cl_uint count = 0;
  cl_command_queue queues[kMaxRecordedQueues];
};

// Null: we did not see its creation.
const Recording* FindRecording(cl_command_buffer_khr recording);

// The scope of a call that makes a command buffer for the given queues.
class RecordingCreation {
 public:
  explicit RecordingCreation(const Call&) {}
  void Finish(bool created, cl_command_buffer_khr recording, cl_uint count, const cl_command_queue* queues) {
    if (created) Register(recording, count, queues);
  }

 private:
  static void Register(cl_command_buffer_khr recording, cl_uint count, const cl_command_queue* queues);
};

// The scope of clRetainCommandBufferKHR.
class RecordingRetention {
 public:
  RecordingRetention(const Call&, cl_command_buffer_khr recording) : recording_(recording) {}
  void Finish(bool retained);

 private:
  cl_command_buffer_khr recording_;
};

// The scope of clReleaseCommandBufferKHR.
class RecordingRelease {
 public:
  // Before the call: after the last release its handle may be reused.
  RecordingRelease(const Call&, cl_command_buffer_khr recording);
  void Finish(bool) {}
};

}  // namespace xsched::opencl
