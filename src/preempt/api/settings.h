// The settings from the environment (names as in XSched 1.2). They are read once. An invalid value causes one
// warning, and the default is used.
#pragma once

#include "base/clock.h"
#include "preempt/gates/launch_config.h"
#include "sched/core/policy_setting.h"
#include "sched/core/types.h"
#include "xsched/types.h"

namespace xsched::preempt {

struct Settings {
  // XSCHED_SCHEDULER = APP | LCL | GLB, XSCHED_POLICY (which means LCL).
  XSchedulerType scheduler = kSchedulerAppManaged;
  sched::PolicySetting policy = *sched::FindPolicy(sched::kDefaultPolicy);

  // XSCHED_AUTO_XQUEUE and XSCHED_AUTO_XQUEUE_*: the queues that shims make by themselves.
  bool auto_xqueue = false;
  XPreemptLevel level = kPreemptLevelInterrupt;  // the queue uses the best level up to this
  int64_t threshold = kDefaultThreshold;
  int64_t batch_size = kDefaultBatchSize;
  sched::Hints hints;
  Timeslice timeslice_us = 0;  // 0: not given
  size_t at_a_time = 0;        // XSCHED_AUTO_XQUEUE_KDEADLINE; likewise

  // XSCHED_PREEMPT_LATENCY_US: a queue that may be held has no more in flight than finishes within this time
  // (but at least one command). This is for gates that the host opens, at some 20 µs each.
  Duration latency = kHostGateLatency;
  // The same for device-side gates, at some 3 µs each. Set by the same variable.
  Duration gate_latency = kDeviceGateLatency;
};

const Settings& GetSettings();
// Reads them. Exposed for tests.
Settings ReadSettings();

}  // namespace xsched::preempt
