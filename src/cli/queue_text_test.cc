#include "cli/queue_text.h"

#include <gtest/gtest.h>

#include "cli/json_text.h"
#include "sched/core/scheduler.h"

namespace xsched::cli {
namespace {

ipc::QueueInfo Waiting(uint32_t reason) {
  ipc::QueueInfo queue{};
  queue.state = static_cast<uint32_t>(sched::QueueState::kReady);
  queue.wait_reason = reason;
  queue.waiting_since_ns = 1'230'000'000;
  return queue;
}
ipc::QueueInfo Waiting(sched::WaitReason reason) { return Waiting(static_cast<uint32_t>(reason)); }

TEST(QueueText, says_in_a_phrase_why_a_queue_does_not_run) {
  EXPECT_EQ(WhyText(Waiting(sched::WaitReason::kNone)), "");
  EXPECT_EQ(WhyText(Waiting(sched::WaitReason::kTurn)), "waits for its turn since 1.2 s");
  EXPECT_EQ(WhyText(Waiting(sched::WaitReason::kOffDevice)), "process off the device since 1.2 s");
  EXPECT_EQ(WhyText(Waiting(sched::WaitReason::kStalled)), "stalled since 1.2 s");
  EXPECT_EQ(WhyText(Waiting(sched::WaitReason::kAbsent)), "suspended by the program");
  ipc::QueueInfo limited = Waiting(sched::WaitReason::kLimited);
  limited.limited_for_ns = 12'340'000;
  EXPECT_EQ(WhyText(limited), "has used up its limit until 12.3 ms from now");
  EXPECT_EQ(WhyText(Waiting(ipc::kWaitProcessStopped)), "process stopped");
  EXPECT_EQ(WhyText(Waiting(ipc::kWaitProcessSilent)), "process does not answer");
  EXPECT_EQ(WhyText(Waiting(ipc::kWaitNoAccess)), "runs unscheduled: it did not show access to the device");
  EXPECT_EQ(WhyText(Waiting(77)), "") << "a newer server's reason";
}

TEST(QueueText, names_the_queue_that_another_is_held_for_as_far_as_the_reader_may_know) {
  ipc::QueueInfo queue = Waiting(sched::WaitReason::kHeld);
  EXPECT_EQ(WhyText(queue), "held since 1.2 s");
  queue.waits_for_pid = ipc::kWaitsForAnotherUser;
  EXPECT_EQ(WhyText(queue), "held for another user's queue since 1.2 s");
  EXPECT_EQ(ToJson(queue)["waits_for"], nullptr);
  queue.waits_for_queue = 7;
  queue.waits_for_pid = 812;
  snprintf(queue.waits_for_name, sizeof queue.waits_for_name, "serve.py");
  EXPECT_EQ(WhyText(queue), "held for queue 7 (serve.py, pid 812) since 1.2 s");
  EXPECT_EQ(ToJson(queue)["why"], WhyText(queue));
  queue.wait_reason = static_cast<uint32_t>(sched::WaitReason::kTurn);
  EXPECT_EQ(WhyText(queue), "waits for its turn behind queue 7 (serve.py, pid 812) since 1.2 s");
  queue.wait_reason = static_cast<uint32_t>(sched::WaitReason::kOffDevice);
  EXPECT_EQ(WhyText(queue), "process off the device for queue 7 (serve.py, pid 812) since 1.2 s");
  EXPECT_EQ(ToJson(queue)["waits_for"], 7);
}

TEST(QueueText, says_what_the_process_is_in_as_far_as_that_is_known) {
  ipc::QueueInfo queue{};
  EXPECT_EQ(IdentityText(queue), "");
  for (const char* member : {"container", "pod", "job"}) EXPECT_EQ(ToJson(queue).at(member), nullptr);
  const std::string container = "1f3a5b6c7d8e" + std::string(52, '9');
  ipc::SetText(queue.container, container);
  EXPECT_EQ(IdentityText(queue), "container 1f3a5b6c7d8e");
  EXPECT_EQ(ToJson(queue)["container"], container);
  ipc::SetText(queue.pod, "0a1b-2c");
  EXPECT_EQ(IdentityText(queue), "pod 0a1b-2c, container 1f3a5b6c7d8e");
  EXPECT_EQ(ToJson(queue)["pod"], "0a1b-2c");
  ipc::QueueInfo of_slurm{};
  ipc::SetText(of_slurm.slurm_job, "1234");
  EXPECT_EQ(IdentityText(of_slurm), "job 1234");
  EXPECT_EQ(ToJson(of_slurm)["job"], "1234");
}

// Programs read it: names, values and order stay.
TEST(QueueText, in_json_is_as_programs_know_it) {
  ipc::QueueInfo queue{};
  queue.queue_id = 7;
  queue.client_id = 3;
  queue.handle = 99;
  queue.device = 0x1'0000'0000;
  queue.pid = 812;
  queue.uid = ~0u;  // nobody's
  queue.platform = kPlatformCUDA;
  queue.level = 2;
  queue.state = static_cast<uint32_t>(sched::QueueState::kReady);
  queue.tracked = 1;
  queue.hints = {-3, 40, 20000, -1, -4, 9};
  queue.more_hints = {.weight = 300,
                      .floor = 15,
                      .guarantee_us = 2000,
                      .period_us = 10'000,
                      .limit_us = 5000,
                      .burst_us = 0,
                      .latency_target_us = 20'000};
  queue.threshold = 16;
  queue.batch_size = 8;
  queue.submitted = 1000;
  queue.retired = 990;
  queue.service_ns = 5'000'000'000;
  queue.waiting_ns = 12;
  queue.holds = 4;
  queue.incidents = 1;
  snprintf(queue.name, sizeof queue.name, "serve.py");
  snprintf(queue.device_name, sizeof queue.device_name, "H200");
  queue.wait_reason = static_cast<uint32_t>(sched::WaitReason::kTurn);
  queue.waiting_since_ns = 1'230'000'000;
  queue.memory_used = 4096;
  queue.memory_limit = 8192;
  queue.counted_priority = -13;
  snprintf(queue.tenant, sizeof queue.tenant, "lab");
  EXPECT_EQ(JsonText(ToJson(queue)), R"({
  "batch_size": 8,
  "burst_us": 0,
  "client": 3,
  "container": null,
  "counted_priority": -13,
  "critical_priority": 9,
  "deadline_us": 20000,
  "device": "H200",
  "device_id": 4294967296,
  "floor": 15,
  "gated": false,
  "guarantee_us": 2000,
  "holds": 4,
  "incidents": 1,
  "job": null,
  "latency_target_us": 20000,
  "lax_priority": -4,
  "laxity_us": -1,
  "level": 2,
  "limit_us": 5000,
  "memory_limit": 8192,
  "memory_used": 4096,
  "period_us": 10000,
  "pid": 812,
  "platform": "CUDA",
  "pod": null,
  "priority": -3,
  "process": "serve.py",
  "queue": 7,
  "retired": 990,
  "service_ns": 5000000000,
  "state": "held",
  "submitted": 1000,
  "tenant": "lab",
  "threshold": 16,
  "tracked": true,
  "user": "4294967295",
  "utilization": 40,
  "waiting_ns": 12,
  "waits_for": null,
  "weight": 300,
  "why": "waits for its turn since 1.2 s"
})");
}

}  // namespace
}  // namespace xsched::cli
