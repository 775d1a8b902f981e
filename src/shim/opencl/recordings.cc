#include "shim/opencl/recordings.h"

#include <algorithm>

#include "base/fork_handler.h"
#include "base/no_destroy.h"

namespace xsched::opencl {
namespace {

constinit NoDestroy<Records<Recording>> recordings;

uint64_t KeyOf(cl_command_buffer_khr recording) { return reinterpret_cast<uint64_t>(recording); }

void InstallForkHandlerOfRecordings() {
  static constinit ForkHandler handler = {[] { recordings->ResetAfterFork(); }};
  handler.Install();
}

}  // namespace

const Recording* FindRecording(cl_command_buffer_khr recording) { return recordings->Find(KeyOf(recording)); }

void RecordingCreation::Register(cl_command_buffer_khr recording, cl_uint count,
                                 const cl_command_queue* queues) {
  InstallForkHandlerOfRecordings();
  recordings->Forget(KeyOf(recording));  // one with the same address, whose end we did not see
  if (queues == nullptr || count == 0) return;
  Recording* record = recordings->New();
  if (record == nullptr) return;
  record->count = std::min(count, kMaxRecordedQueues);
  std::copy_n(queues, record->count, record->queues);
  recordings->Insert(KeyOf(recording), record);
}

void RecordingRetention::Finish(bool retained) {
  if (retained) recordings->Retain(KeyOf(recording_));
}

RecordingRelease::RecordingRelease(const Call&, cl_command_buffer_khr recording) {
  recordings->Release(KeyOf(recording));
}

}  // namespace xsched::opencl
