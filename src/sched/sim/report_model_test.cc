// What the scheduler can know of programs that launched far ahead before any other program came.
#include "sched/sim/report_model.h"

#include <gtest/gtest.h>

#include "sched/sim/world.h"

namespace xsched::sched::sim {
namespace {

QueueModel Full(uint64_t retired, uint64_t room) {
  QueueModel queue;
  queue.retired = retired;
  queue.submitted = retired + room + 1;
  queue.launching = true;
  return queue;
}

TEST(ReportModel, commands_from_before_the_queue_was_tracked_report_nothing_until_all_have_retired) {
  ReportModel reports;
  QueueModel queue;
  queue.submitted = 10;
  queue.retired = 2;
  reports.Track(queue, queue.submitted);
  queue.submitted = 20;
  queue.retired = 9;
  EXPECT_EQ(reports.Retired(queue), 0u);
  queue.retired = 10;
  EXPECT_EQ(reports.Retired(queue), 10u);
  queue.retired = 15;
  EXPECT_EQ(reports.Retired(queue), 15u);
}

TEST(ReportModel, a_queue_that_has_finished_is_known_to_have) {
  ReportModel reports;
  QueueModel queue;
  queue.submitted = 10;
  reports.Track(queue, queue.submitted);
  queue.retired = 10;
  EXPECT_EQ(reports.Retired(queue), 10u);
}

TEST(ReportModel, each_answer_for_a_full_stream_that_has_taken_launches_counts_a_move) {
  ReportModel reports;
  reports.Track(Full(0, 800), 801);
  reports.Ask(Full(0, 800));
  EXPECT_EQ(reports.moves(), 0u);
  reports.Ask(Full(3, 800));
  EXPECT_EQ(reports.moves(), 1u);
  reports.Ask(Full(3, 800));
  EXPECT_EQ(reports.moves(), 1u);
  QueueModel elsewhere = Full(4, 800);
  elsewhere.launching = false;
  reports.Ask(elsewhere);
  reports.Ask(Full(5, 800));
  EXPECT_EQ(reports.moves(), 1u);
}

// ---- under the scheduler ----

History FarAhead(int room) {
  QueueScript urgent{
      .process = 1, .priority = 5, .style = Style::kLaunchesAhead, .command = milliseconds(5), .room = room};
  QueueScript late{.process = 0, .style = Style::kLaunchesAhead, .start = milliseconds(50)};
  return {.processes = {{.level = 2}, {.level = 2}}, .queues = {late, urgent}, .length = milliseconds(2000)};
}

TEST(LaunchingAhead, an_urgent_program_that_had_filled_its_stream_before_its_rival_came_keeps_its_claim) {
  for (const int room : {700, 850, 1020}) {
    const Outcome outcome = sim::Run(FarAhead(room));
    EXPECT_EQ(outcome.broken, "");
    EXPECT_EQ(outcome.incidents, 0u) << room;
  }
}

TEST(LaunchingAhead, a_full_stream_that_waits_for_what_is_held_is_no_excuse) {
  History history = FarAhead(700);
  history.queues[1].wait = Wait::kHidden;
  history.queues[1].every = 20;
  const Outcome outcome = sim::Run(history);
  EXPECT_EQ(outcome.broken, "");
  EXPECT_GT(outcome.incidents, 5u);
}

}  // namespace
}  // namespace xsched::sched::sim
