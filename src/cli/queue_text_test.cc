#include "cli/queue_text.h"

#include <gtest/gtest.h>

#include "cli/top/top_text.h"
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
  EXPECT_EQ(WhyText(Waiting(ipc::kWaitProcessStopped)), "process stopped");
  EXPECT_EQ(WhyText(Waiting(ipc::kWaitProcessSilent)), "process does not answer");
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
  EXPECT_EQ(ToJson(queue)["waits_for"], 7);
}

TEST(QueueText, a_row_of_top_ends_with_why) {
  ipc::QueueInfo queue = Waiting(sched::WaitReason::kTurn);
  snprintf(queue.device_name, sizeof queue.device_name, "H200");
  EXPECT_TRUE(TopRow({queue}).ends_with("  H200: waits for its turn since 1.2 s"));
  queue.wait_reason = 0;
  EXPECT_TRUE(TopRow({queue}).ends_with("  H200"));
}

}  // namespace
}  // namespace xsched::cli
