// What the environment asks for (names as in XSched 1.2). Read once; a bad value is one warning and the
// default.
#pragma once

#include "base/clock.h"
#include "preempt/gates/launch_config.h"
#include "sched/core/types.h"
#include "xsched/types.h"

namespace xsched::preempt {

struct Settings {
  // XSCHED_SCHEDULER = APP | LCL | GLB, XSCHED_POLICY (which means LCL).
  XSchedulerType scheduler = kSchedulerAppManaged;
  XPolicyType policy = kPolicyHighestPriorityFirst;

  // XSCHED_AUTO_XQUEUE and XSCHED_AUTO_XQUEUE_*: the queues that shims make by themselves.
  bool auto_xqueue = false;
  XPreemptLevel level = kPreemptLevelInterrupt;  // the best that the queue has up to this
  int64_t threshold = kDefaultThreshold;
  int64_t batch_size = kDefaultBatchSize;
  sched::Hints hints;
  Timeslice timeslice_us = 0;  // 0: not given

  // XSCHED_PREEMPT_LATENCY_US: a queue that may be told to hold has no more in flight than finishes within
  // this (but at least one command). Where the host opens the gates, each costs some 20 µs.
  Duration latency = std::chrono::microseconds(2000);
  // The same for devices that open their gates themselves, at some 3 µs each; set by the same variable.
  Duration gate_latency = std::chrono::microseconds(50);
};

const Settings& GetSettings();
// Reads them. Exposed for tests.
Settings ReadSettings();

}  // namespace xsched::preempt
