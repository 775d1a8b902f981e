// Whether the agent's thread checks regularly what is taken from the process. While something is, a hanging
// server or a closed descriptor must be noticed. While nothing is, the thread sleeps, and a launch that finds
// something taken wakes it. Time is passed in. Part of the process's state, because launches read it.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace xsched::preempt {

class TakenWatch {
 public:
  // How often the thread checks.
  static constexpr Duration kEvery = std::chrono::milliseconds(60);
  // For how long it goes on checking when nothing is taken any more. So a program with occasional work does
  // not wake the thread more often.
  static constexpr Duration kOn = std::chrono::seconds(1);

  constexpr TakenWatch() = default;

  // The thread checks. seq_cst, against Pause: a launch that counts its command before it reads this is seen
  // by the check, or sees that there will be none.
  bool on() const { return on_.load(std::memory_order_seq_cst); }
  // A launch has found something taken. True: the thread does not check, and must be woken. Lock-free.
  bool Begin() { return !on() && !on_.exchange(true, std::memory_order_seq_cst); }

  // ---- the thread ----
  // It is about to check. This must be first: from now on, a launch that finds something taken wakes it.
  void Pause() { on_.store(false, std::memory_order_seq_cst); }
  // It has checked. Returns when the next check is due; kNever: when a launch begins it.
  TimePoint Checked(bool taken, TimePoint now) {
    if (taken) until_ = now + kOn;
    if (now >= until_) return kNever;
    on_.store(true, std::memory_order_seq_cst);
    return now + kEvery;
  }

 private:
  std::atomic<bool> on_{false};
  TimePoint until_{};  // the thread's alone
};

}  // namespace xsched::preempt
