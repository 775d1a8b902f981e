// What the generated wrappers do around a command or a wait. Nothing here changes what the program sees: its
// call's arguments, result and side effects are the driver's.
#pragma once

#include <optional>

#include "preempt/api/launch.h"
#include "shim/common/pass_through.h"
#include "shim/cuda/captures.h"
#include "shim/cuda/code.h"
#include "shim/cuda/events.h"
#include "shim/cuda/streams.h"

namespace xsched::cuda {

// One command on one stream.
class Launch {
 public:
  Launch(const Call& call, CUstream stream) : queue_(Announce(call, stream)), scope_(queue_) {}

  // `finishes`: the call returned when the command, and so all before it, had finished.
  void Finish(CUresult result, bool finishes) {
    if (queue_ == nullptr) return;
    scope_.Finish(result == CUDA_SUCCESS);
    if (finishes && result == CUDA_SUCCESS) preempt::RetiredUpTo(queue_, scope_.number());
  }

 private:
  static preempt::XQueue* Announce(const Call& call, CUstream stream) {
    if (shim::PassesThrough(call.site(), call.function())) [[unlikely]]
      return nullptr;
    preempt::XQueue* queue = QueueForCommand(stream);
    if (queue != nullptr && preempt::TracksDependencies(queue)) [[unlikely]]
      shim::AddImplicitDependencies(queue, KeyOf(stream));
    return queue;
  }

  preempt::XQueue* queue_;
  preempt::LaunchScope scope_;
};

// A kernel's launch, which may have to load its code.
class KernelLaunch {
 public:
  KernelLaunch(const Call& call, CUstream stream, CUfunction function)
      : use_(call, function), launch_(call, stream) {}
  void Finish(CUresult result) { launch_.Finish(result, false); }

 private:
  CodeUse use_;
  Launch launch_;
};

// One kernel on each of several streams, by their contexts' default streams if need be.
class MultiLaunch {
 public:
  MultiLaunch(const Call& call, const CUDA_LAUNCH_PARAMS* launches, unsigned count);
  void Finish(CUresult result);

 private:
  static constexpr unsigned kMaxStreams = 16;  // more are launched unscheduled
  std::optional<Launch> launches_[kMaxStreams];
};

// Around cuStreamSynchronize and cuStreamQuery.
class StreamWait {
 public:
  StreamWait(const Call&, CUstream stream)
      : queue_(shim::FindQueue(KeyOf(stream))),
        newest_(queue_ == nullptr ? 0 : preempt::SubmittedNow(queue_)) {}
  void Finish(CUresult result) const {
    if (queue_ != nullptr && result == CUDA_SUCCESS) preempt::RetiredUpTo(queue_, newest_);
  }

 private:
  preempt::XQueue* queue_;
  uint64_t newest_;
};

}  // namespace xsched::cuda
