#include "cli/queue_table.h"

#include <gmock/gmock.h>

#include "sched/core/scheduler.h"

namespace xsched::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

ipc::QueueInfo Named(const char* name) {
  ipc::QueueInfo queue{};
  ipc::SetText(queue.name, std::string_view(name));
  ipc::SetText(queue.device_name, std::string_view("H200"));
  queue.platform = kPlatformCUDA;
  return queue;
}

TEST(QueueTable, is_as_narrow_as_before_where_no_process_is_in_a_job_pod_or_container) {
  const std::vector<std::string> lines = QueueTable({Named("serve"), Named("train")});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], EndsWith("  DEVICE      WHY"));
  EXPECT_THAT(lines[1], EndsWith("  CUDA: H200"));
}

TEST(QueueTable, says_what_a_process_is_in_if_that_is_known_of_one) {
  ipc::QueueInfo held = Named("train");
  ipc::SetText(held.slurm_job, std::string_view("1234"));
  held.state = static_cast<uint32_t>(sched::QueueState::kReady);
  held.wait_reason = static_cast<uint32_t>(sched::WaitReason::kAbsent);
  const std::vector<std::string> lines = QueueTable({Named("serve"), held});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], EndsWith("  DEVICE      IN        WHY"));
  EXPECT_THAT(lines[1], EndsWith("  CUDA: H200"));
  EXPECT_THAT(lines[2], EndsWith("  CUDA: H200  job 1234  suspended by the program"));
}

TEST(QueueTable, says_what_priorities_count_if_one_counts_otherwise) {
  EXPECT_THAT(QueueTable({Named("serve")})[0], Not(HasSubstr("COUNTS")));
  ipc::QueueInfo lowered = Named("serve");
  ipc::SetText(lowered.tenant, std::string_view("lab"));
  lowered.counted_priority = -3;
  const std::vector<std::string> lines = QueueTable({lowered});
  EXPECT_THAT(lines[0], HasSubstr(" PRIO COUNTS UTIL "));
  EXPECT_THAT(lines[1], HasSubstr("     0     -3    0 "));
}

}  // namespace
}  // namespace xsched::cli
