// Processes that are there, but have no queue on a device any more. They may come back with a new queue at
// any time, as programs do that make a stream for each request. It would find as much in flight as others
// have launched without gates. So what such a queue could hold keeps its gates until the process is gone.
// Time slices serve a new queue without gates, so this is for devices without them.
//
// Pure.
#pragma once

#include "base/array.h"
#include "sched/core/types.h"

namespace xsched::sched {

class FormerRivals {
 public:
  struct Rival {
    ProcessId process;
    DeviceId device;
    Hints hints;  // of its last queue there
  };

  // The process has no queue on the device any more.
  void Left(const Rival& rival) {
    // One user must not fill the memory. Whoever is forgotten for that is a rival again with its next queue.
    if (rivals_.size() == kMost) rivals_.Remove(0);
    [[maybe_unused]] const bool kept = rivals_.Push(rival);  // likewise, if memory runs out
  }
  // It has one again.
  void CameBack(ProcessId process, DeviceId device) {
    Remove([=](const Rival& rival) { return rival.process == process && rival.device == device; });
  }
  // The process is gone. True: it was a former rival.
  bool Gone(ProcessId process) {
    const size_t before = rivals_.size();
    Remove([=](const Rival& rival) { return rival.process == process; });
    return rivals_.size() != before;
  }
  const Array<Rival>& all() const { return rivals_; }

 private:
  static constexpr size_t kMost = 256;

  template <typename Is>
  void Remove(Is&& is) {
    for (size_t i = rivals_.size(); i-- > 0;) {
      if (is(rivals_[i])) rivals_.Remove(i);
    }
  }

  Array<Rival> rivals_;
};

}  // namespace xsched::sched
