// What the generated wrappers do around a command or a wait. Nothing here changes what the program sees: its
// call's arguments, result and side effects are the runtime's.
//
// No call of HIP's is made after the program's own: some versions would then report its result as the last
// error.
#pragma once

#include <optional>

#include "preempt/api/launch.h"
#include "shim/common/pass_through.h"
#include "shim/hip/capture.h"
#include "shim/hip/events.h"
#include "shim/hip/streams.h"

namespace xsched::hip {

inline constexpr hipMemcpyKind kToHost = 2;

// One command on one stream.
class Launch {
 public:
  Launch(const Call& call, hipStream_t stream) : queue_(Announce(call, stream)), scope_(queue_) {}

  // `finishes`: the call returned when the command, and so all before it, had finished.
  void Finish(hipError_t result, bool finishes) {
    if (queue_ == nullptr) return;
    scope_.Finish(result == hipSuccess);
    if (finishes && result == hipSuccess) preempt::RetiredUpTo(queue_, scope_.number());
  }

  // Null: it passes untouched.
  preempt::XQueue* queue() const { return queue_; }

 private:
  static preempt::XQueue* Announce(const Call& call, hipStream_t stream) {
    if (shim::PassesThrough(call.site(), call.function())) [[unlikely]]
      return nullptr;
    preempt::XQueue* queue = QueueForCommand(call.copy(), stream);
    if (queue != nullptr && preempt::TracksDependencies(queue)) [[unlikely]]
      shim::AddImplicitDependencies(queue, KeyOf(call.copy(), stream));
    return queue;
  }

  preempt::XQueue* queue_;
  preempt::LaunchScope scope_;
};

// A kernel that records an event at its end (another, at its start, tells less).
class TimedLaunch {
 public:
  TimedLaunch(const Call& call, hipStream_t stream, hipEvent_t stop)
      : launch_(call, stream), event_(shim::FindEvent(HandleOf(stop))) {
    if (event_ == nullptr || launch_.queue() == nullptr) return;
    if (shim::Stream* record = shim::FindStream(KeyOf(call.copy(), stream)))
      point_ = shim::EventPoint::NewestOn(record, launch_.queue());
  }
  void Finish(hipError_t result) {
    launch_.Finish(result, false);
    if (event_ == nullptr || result != hipSuccess) return;
    if (point_.stream != nullptr) point_.number = preempt::SubmittedNow(launch_.queue());
    event_->Set(point_);
  }

 private:
  Launch launch_;
  shim::Event* event_;
  shim::EventPoint point_;
};

// hipConfigureCall … hipLaunchByPtr: the stream is said before, and waits in the thread. They nest.
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

// One kernel on each of several streams, of one device each.
class MultiLaunch {
 public:
  MultiLaunch(const Call& call, const hipLaunchParams* launches, unsigned count);
  MultiLaunch(const Call& call, const hipFunctionLaunchParams* launches, unsigned count);
  void Finish(hipError_t result);

 private:
  static constexpr unsigned kMaxStreams = 64;  // more are launched unscheduled
  std::optional<Launch> launches_[kMaxStreams];
};

// Around hipStreamSynchronize and hipStreamQuery.
class StreamWait {
 public:
  StreamWait(const Call& call, hipStream_t stream)
      : queue_(shim::FindQueue(KeyOf(call.copy(), stream))),
        newest_(queue_ == nullptr ? 0 : preempt::SubmittedNow(queue_)) {}
  void Finish(hipError_t result) const {
    if (queue_ != nullptr && result == hipSuccess) preempt::RetiredUpTo(queue_, newest_);
  }

 private:
  preempt::XQueue* queue_;
  uint64_t newest_;
};

}  // namespace xsched::hip
