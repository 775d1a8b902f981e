// The scopes of calls that put commands on HIP streams.
#pragma once

#include <optional>

#include "shim/common/command_scopes.h"
#include "shim/common/event_scopes.h"
#include "shim/hip/platform.h"

namespace xsched::hip {

inline constexpr hipMemcpyKind kToHost = 2;

using Launch = shim::Launch<Platform>;
using PassingCommand = shim::PassingCommand<Platform>;
using MultiLaunch = shim::MultiLaunch<Platform>;

// hipStreamBatchMemOp. A batch of writes is like single ones: it tells others that earlier work is done.
class MemoryOperations {
 public:
  MemoryOperations(const Call& call, hipStream_t stream, const hipStreamBatchMemOpParams* operations,
                   unsigned count)
      : scope_(OnlyWrites(operations, count)
                   ? preempt::LaunchScope(shim::Announce<Platform>(call, stream), preempt::Passing())
                   : preempt::LaunchScope(shim::Announce<Platform>(call, stream))) {}
  void Finish(hipError_t result) { scope_.Finish(result == hipSuccess); }

 private:
  static bool OnlyWrites(const hipStreamBatchMemOpParams* operations, unsigned count);
  preempt::LaunchScope scope_;
};

// A kernel that records an event at its start and one at its end. The first is at no point between commands,
// so nothing is known of it from then on.
class TimedLaunch {
 public:
  TimedLaunch(const Call& call, hipStream_t stream, hipEvent_t start, hipEvent_t stop)
      : launch_(call, stream), start_(call, start), event_(shim::FindEvent(shim::KeyOfEvent(stop))) {
    if (event_ == nullptr || launch_.queue() == nullptr) return;
    if (shim::Stream* record = shim::FindStream(Platform::KeyOf(call, stream)))
      point_ = shim::EventPoint::NewestOn(record, launch_.queue());
  }
  void Finish(hipError_t result) {
    launch_.Finish(result, false);
    start_.Finish(result);
    if (event_ == nullptr || result != hipSuccess) return;
    if (point_.stream != nullptr) point_.number = preempt::SubmittedNow(launch_.queue());
    event_->Set(point_);
  }

 private:
  Launch launch_;
  shim::UnknownRecording<Platform> start_;
  shim::Event* event_;
  shim::EventPoint point_;
};

// hipGraphInstantiateWithParams.
class GraphInstantiation {
 public:
  GraphInstantiation(const Call& call, const hipGraphInstantiateParams* params) {
    if (params != nullptr && (params->flags & kHipGraphInstantiateUpload) != 0)
      upload_.emplace(call, params->uploadStream);
  }
  void Finish(hipError_t result) {
    if (upload_.has_value()) upload_->Finish(result, false);
  }

 private:
  std::optional<Launch> upload_;
};

// hipConfigureCall and hipLaunchByPtr: the first sets the stream of the launch, per thread. Calls nest.
class Configuration {
 public:
  explicit Configuration(const Call&) {}
  void Finish(hipError_t result, hipStream_t stream);
};
class ConfiguredLaunch {
 public:
  explicit ConfiguredLaunch(const Call& call) : launch_(call, TakeStream()) {}
  void Finish(hipError_t result) { launch_.Finish(result, false); }

 private:
  static hipStream_t TakeStream();
  Launch launch_;
};

}  // namespace xsched::hip
