#include "preempt/api/settings.h"

#include <pthread.h>
#include <strings.h>

#include <cstdint>
#include <optional>

#include "base/env.h"
#include "base/former_variables.h"
#include "base/log.h"
#include "sched/core/reservation.h"

namespace xsched::preempt {
namespace {

XSchedulerType SchedulerFromName(const char* name) {
  if (strcasecmp(name, "APP") == 0) return kSchedulerAppManaged;
  if (strcasecmp(name, "LCL") == 0) return kSchedulerLocal;
  if (strcasecmp(name, "GLB") == 0) return kSchedulerGlobal;
  XSCHED_WARN("XSCHED_SCHEDULER=%s is none of APP, LCL, GLB: using APP", name);
  return kSchedulerAppManaged;
}

void ReadScheduler(Settings& settings) {
  if (const char* name = EnvText("XSCHED_SCHEDULER")) settings.scheduler = SchedulerFromName(name);
  const char* policy_name = EnvText("XSCHED_POLICY");
  if (policy_name == nullptr) return;
  settings.scheduler = kSchedulerLocal;
  Result<sched::PolicySetting> policy = sched::ParsePolicySetting(policy_name);
  if (policy) {
    settings.policy = *policy;
  } else {
    XSCHED_WARN("XSCHED_POLICY=%s: %s; using %s", policy_name, policy.error().text(),
                settings.policy.first().info().name);
  }
}

void ReadHints(Settings& settings) {
  sched::Hints& hints = settings.hints;
  hints.priority = static_cast<Priority>(
      EnvInt("XSCHED_AUTO_XQUEUE_PRIORITY", PRIORITY_NO_EXECUTE, PRIORITY_MAX).value_or(PRIORITY_DEFAULT));
  hints.utilization =
      static_cast<Utilization>(EnvInt("XSCHED_AUTO_XQUEUE_UTILIZATION", UTILIZATION_MIN, UTILIZATION_MAX)
                                   .value_or(UTILIZATION_DEFAULT));
  hints.deadline_us = EnvInt("XSCHED_AUTO_XQUEUE_DEADLINE", 1, DEADLINE_MAX).value_or(NO_DEADLINE);
  hints.laxity_us = EnvInt("XSCHED_AUTO_XQUEUE_LAXITY", 1, DEADLINE_MAX).value_or(NO_LAXITY);
  hints.critical_priority = hints.priority;
  hints.weight = static_cast<Weight>(
      EnvInt("XSCHED_AUTO_XQUEUE_WEIGHT", WEIGHT_MIN, WEIGHT_MAX).value_or(WEIGHT_DEFAULT));
  hints.latency_target_us = EnvInt("XSCHED_AUTO_XQUEUE_LATENCY_TARGET", NO_LATENCY_TARGET, LATENCY_TARGET_MAX)
                                .value_or(NO_LATENCY_TARGET);
  hints.floor =
      static_cast<Floor>(EnvInt("XSCHED_AUTO_XQUEUE_FLOOR", FLOOR_MIN, FLOOR_MAX).value_or(FLOOR_DEFAULT));
  sched::Hints reserved = hints;
  reserved.guarantee_us = EnvInt("XSCHED_AUTO_XQUEUE_GUARANTEE", 0, RESERVATION_PERIOD_MAX).value_or(0);
  reserved.period_us =
      EnvInt("XSCHED_AUTO_XQUEUE_PERIOD", RESERVATION_PERIOD_MIN, RESERVATION_PERIOD_MAX).value_or(0);
  reserved.limit_us = EnvInt("XSCHED_AUTO_XQUEUE_LIMIT", 0, RESERVATION_PERIOD_MAX).value_or(0);
  reserved.burst_us = EnvInt("XSCHED_AUTO_XQUEUE_BURST", 0, RESERVATION_PERIOD_MAX).value_or(0);
  if (sched::IsReservation(reserved)) {
    hints = reserved;
  } else {
    XSCHED_WARN(
        "XSCHED_AUTO_XQUEUE_GUARANTEE, _PERIOD, _LIMIT and _BURST are no reservation together "
        "(xsched/hint.h): ignoring them");
  }
  settings.timeslice_us = EnvInt("XSCHED_AUTO_XQUEUE_TIMESLICE", TIMESLICE_MIN, TIMESLICE_MAX).value_or(0);
  settings.at_a_time = static_cast<size_t>(
      EnvInt("XSCHED_AUTO_XQUEUE_KDEADLINE", 1, int64_t{sched::kMostAtATime}).value_or(0));
}

}  // namespace

Settings ReadSettings() {
  Settings settings;
  ReadScheduler(settings);
  settings.auto_xqueue = EnvBool("XSCHED_AUTO_XQUEUE").value_or(false);
  settings.level = static_cast<XPreemptLevel>(
      EnvInt("XSCHED_AUTO_XQUEUE_LEVEL", kPreemptLevelBlock, kPreemptLevelInterrupt)
          .value_or(kPreemptLevelInterrupt));
  settings.threshold = EnvInt("XSCHED_AUTO_XQUEUE_THRESHOLD", 1, INT64_MAX).value_or(kDefaultThreshold);
  int64_t batch = settings.threshold < kDefaultBatchSize ? settings.threshold : kDefaultBatchSize;
  settings.batch_size = EnvInt("XSCHED_AUTO_XQUEUE_BATCH_SIZE", 1, settings.threshold).value_or(batch);
  ReadHints(settings);
  if (auto latency = EnvInt("XSCHED_PREEMPT_LATENCY_US", 1, 10'000'000)) {
    settings.latency = settings.gate_latency = std::chrono::microseconds(*latency);
  }
  return settings;
}

const Settings& GetSettings() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static constinit std::optional<Settings> settings;
  pthread_once(&once, [] {
    settings.emplace(ReadSettings());
    WarnOfFormerVariables();
  });
  return *settings;
}

}  // namespace xsched::preempt
