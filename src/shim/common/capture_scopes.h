// The scopes of calls that begin and end stream captures (captures.h). `Platform`: platform.h of each shim.
#pragma once

#include <cstdint>

#include "preempt/api/launch.h"
#include "preempt/api/stream_captures.h"
#include "shim/common/captures.h"
#include "shim/common/streams.h"

namespace xsched::shim {

// When in doubt, it is.
template <typename Platform>
bool IsCapturing(const typename Platform::Call& call, typename Platform::Stream stream) {
  return AnyCapture() && Platform::AskWhetherCapturing(call, stream);
}

template <typename Platform>
class CaptureBegin {
 public:
  // Before the call, so that no command can come in between.
  CaptureBegin(const typename Platform::Call& call, typename Platform::Stream stream)
      : key_(Platform::KeyOf(call, stream)),
        counted_(CaptureBegins(key_)),
        captures_(FindQueue(key_), true) {}
  // If the stream captures already, the driver refuses the call, and that capture goes on.
  void Finish(typename Platform::Result result) {
    if (result != Platform::kSuccess && counted_) CaptureEnded(key_);
  }

 private:
  uint64_t key_;
  bool counted_;  // by this call
  preempt::StreamCaptures captures_;
};

template <typename Platform>
class CaptureEnd {
 public:
  CaptureEnd(const typename Platform::Call& call, typename Platform::Stream stream)
      : call_(call), stream_(stream), key_(Platform::KeyOf(call, stream)) {}
  // An invalid capture ends, and the call returns an error. A capture that another thread must end does not
  // end.
  void Finish(typename Platform::Result result) {
    if (result == Platform::kSuccess || !Platform::CaptureGoesOn(call_, stream_, result)) CaptureEnded(key_);
  }

 private:
  const typename Platform::Call& call_;
  typename Platform::Stream stream_;
  uint64_t key_;
};

}  // namespace xsched::shim
