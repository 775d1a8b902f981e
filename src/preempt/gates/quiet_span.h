// Which launches of a scheduled queue need nothing: no gate, no report, no notification. What decides about
// one command (device_gates.h) knows from which command on it would decide otherwise, if nothing else
// changes. Until then, a launch compares four words, and asks nobody.
//
// Written and read by launching threads. Those of one queue may mix the words of two decisions: then a gate
// or a report comes some commands later.
#pragma once

#include <atomic>
#include <cstdint>

namespace xsched::preempt {

class QuietSpan {
 public:
  constexpr QuietSpan() = default;

  // What was decided about command `after` also holds for those before `until`, as long as the queue has
  // these flags, and no more of it is known to have retired.
  void Begin(uint64_t after, uint64_t until, uint32_t flags, uint64_t retired) {
    after_.store(after, std::memory_order_relaxed);
    until_.store(until, std::memory_order_relaxed);
    flags_.store(flags, std::memory_order_relaxed);
    retired_.store(retired, std::memory_order_relaxed);
  }
  void End() { until_.store(0, std::memory_order_relaxed); }

  bool Has(uint64_t number) const {
    return number > after_.load(std::memory_order_relaxed) && number < until_.load(std::memory_order_relaxed);
  }
  bool Has(uint64_t number, uint32_t flags, uint64_t retired) const {
    return Has(number) && flags == flags_.load(std::memory_order_relaxed) &&
           retired == retired_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> after_{0};
  std::atomic<uint64_t> until_{0};
  std::atomic<uint64_t> retired_{0};
  std::atomic<uint32_t> flags_{0};
};

}  // namespace xsched::preempt
