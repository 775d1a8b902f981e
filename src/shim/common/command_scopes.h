// The scopes of calls that put commands on streams, or wait for them. The program sees no difference: the
// arguments, the result and the side effects of its calls are the driver's. `Platform`: platform.h of each
// shim.
//
// After the program's own call, no scope calls the driver: the program could see that call's error as its
// last error.
#pragma once

#include <cstdint>
#include <optional>

#include "preempt/api/launch.h"
#include "shim/common/pass_through.h"
#include "shim/common/stream_queues.h"

namespace xsched::shim {

// The XQueue of a command on `stream`, whose implicit dependencies are reported. Null: it passes untouched.
template <typename Platform>
[[gnu::always_inline]] inline preempt::XQueue* Announce(const typename Platform::Call& call,
                                                        typename Platform::Stream stream) {
  if (PassesThrough(call.site(), call.function())) [[unlikely]]
    return nullptr;
  const uint64_t key = Platform::KeyOf(call, stream);
  preempt::XQueue* queue = QueueForCommand<Platform>(call, stream, key);
  if (queue != nullptr && preempt::TracksDependencies(queue)) [[unlikely]]
    AddImplicitDependencies(queue, key);
  return queue;
}

// One command on one stream. Compiled into each wrapper as a whole: after a program's own code, each function
// and each line of the caches costs more than its instructions do.
template <typename Platform>
class Launch {
 public:
  [[gnu::always_inline]] Launch(const typename Platform::Call& call, typename Platform::Stream stream)
      : queue_(Announce<Platform>(call, stream)),
        issued_before_(queue_ == nullptr ? 0 : queue_->issued()),
        scope_(queue_) {}

  // `finishes`: the call returned after the command had finished, and so had all that the driver had before
  // it.
  [[gnu::always_inline]] void Finish(typename Platform::Result result, bool finishes) {
    if (queue_ == nullptr) return;
    scope_.Finish(result == Platform::kSuccess);
    if (finishes && result == Platform::kSuccess && preempt::HasAllBefore(issued_before_, scope_.number()))
      preempt::RetiredUpTo(queue_, scope_.number());
  }

  // Null: it passes untouched.
  preempt::XQueue* queue() const { return queue_; }
  uint64_t number() const { return scope_.number(); }

 private:
  preempt::XQueue* queue_;
  const uint64_t issued_before_;
  preempt::LaunchScope scope_;
};

// One command on one stream that is counted and never held (preempt::Passing).
template <typename Platform>
class PassingCommand {
 public:
  PassingCommand(const typename Platform::Call& call, typename Platform::Stream stream)
      : scope_(Announce<Platform>(call, stream), preempt::Passing()) {}
  void Finish(typename Platform::Result result) { scope_.Finish(result == Platform::kSuccess); }

 private:
  preempt::LaunchScope scope_;
};

// The launch of one kernel on each of several streams of different devices.
template <typename Platform>
class MultiLaunch {
 public:
  // `launches`: in the platform's own format.
  template <typename Description>
  MultiLaunch(const typename Platform::Call& call, const Description* launches, unsigned count) {
    for (unsigned i = 0; launches != nullptr && i < count && i < kMaxStreams; ++i)
      launches_[i].emplace(call, Platform::StreamOf(launches[i]));
  }
  void Finish(typename Platform::Result result) {
    for (std::optional<Launch<Platform>>& launch : launches_) {
      if (launch.has_value()) launch->Finish(result, false);
    }
  }

 private:
  static constexpr unsigned kMaxStreams = 64;  // more are launched unscheduled
  std::optional<Launch<Platform>> launches_[kMaxStreams];
};

// The scope of a call that waits for a stream, or asks whether it has finished.
template <typename Platform>
class StreamWait {
 public:
  StreamWait(const typename Platform::Call& call, typename Platform::Stream stream)
      : queue_(FindQueue(Platform::KeyOf(call, stream))),
        newest_(queue_ == nullptr ? 0 : preempt::SubmittedNow(queue_)) {}
  void Finish(typename Platform::Result result) const {
    if (queue_ != nullptr && result == Platform::kSuccess) preempt::RetiredUpTo(queue_, newest_);
  }

 private:
  preempt::XQueue* queue_;
  uint64_t newest_;
};

}  // namespace xsched::shim
