// The agent's thread: sleeps until a descriptor is ready or it is time, and then does the agent's work.
#pragma once

#include <optional>

#include "base/clock.h"

namespace xsched::preempt {

class AgentThread {
 public:
  // What the thread does. Each may take locks.
  class Work {
   public:
    // Descriptors to poll; -1: none.
    struct Sources {
      int bell;
      int client;
      short client_events;
    };
    virtual Sources WhatToAwait() = 0;
    // Returns when to call it again, at the latest; kNever: only when a descriptor is ready. nullopt: the
    // thread ends, and `Work` has noted that.
    virtual std::optional<TimePoint> Attend(TimePoint now) = 0;

   protected:
    ~Work() = default;
  };

  // Starts a thread that blocks all of the program's signals. Returns 0 or an errno value. REQUIRES: the last
  // one has ended, or was left behind by a fork. `work` is never destroyed.
  virtual int Start(Work& work) = 0;

 protected:
  ~AgentThread() = default;
};

// The real one.
class PosixAgentThread final : public AgentThread {
 public:
  int Start(Work& work) override;
};

}  // namespace xsched::preempt
