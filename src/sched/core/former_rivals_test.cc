// Processes that make and release queues again and again: what they may hold has its gates also in between.
#include "sched/core/former_rivals.h"

#include <gtest/gtest.h>

#include "sched/core/scheduler.h"
#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

constexpr ProcessId kServer{9};
constexpr ProcessId kTraining{1};
constexpr DeviceId kShared{7};
constexpr DeviceId kOtherDevice{8};

class FormerRivalsTest : public testing::Test {
 protected:
  void Add(QueueId id, ProcessId process, Priority priority, DeviceId device = kShared,
           bool sliceable = false) {
    Hints hints;
    hints.priority = priority;
    ASSERT_TRUE(scheduler_.AddQueue(id, process, device, hints, now_, {.sliceable = sliceable}));
  }
  void Remove(QueueId id) { scheduler_.RemoveQueue(id, now_); }
  bool IsGated(QueueId id) {
    // Also after the time for which slices are kept.
    for (int i = 0; i < 30; ++i) {
      scheduler_.Decide(now_, sink_);
      now_ += milliseconds(100);
    }
    return sink_.Of(id).gated;
  }

  Scheduler scheduler_{SchedulerConfig{}};
  Recorder sink_;
  TimePoint now_{milliseconds(100)};
};

TEST_F(FormerRivalsTest, until_the_process_ends_its_next_queue_is_expected) {
  Add(QueueId{1}, kTraining, 0);
  EXPECT_FALSE(IsGated(QueueId{1}));
  Add(QueueId{2}, kServer, 5);
  EXPECT_TRUE(IsGated(QueueId{1}));
  Remove(QueueId{2});
  EXPECT_TRUE(IsGated(QueueId{1}));
  scheduler_.RemoveProcess(kServer);
  EXPECT_FALSE(IsGated(QueueId{1}));
}

TEST_F(FormerRivalsTest, it_is_expected_by_new_queues_as_well) {
  Add(QueueId{2}, kServer, 5);
  Remove(QueueId{2});
  scheduler_.Decide(now_, sink_);
  Add(QueueId{1}, kTraining, 0);
  Add(QueueId{3}, kTraining, 0, kOtherDevice);
  EXPECT_TRUE(IsGated(QueueId{1}));
  EXPECT_FALSE(IsGated(QueueId{3}));
}

TEST_F(FormerRivalsTest, what_it_could_not_hold_has_no_gates) {
  Add(QueueId{1}, kTraining, 0);
  Add(QueueId{2}, kServer, 0);
  Remove(QueueId{2});
  EXPECT_FALSE(IsGated(QueueId{1}));
}

TEST_F(FormerRivalsTest, its_new_queue_has_the_hints_that_count) {
  Add(QueueId{1}, kTraining, 0);
  Add(QueueId{2}, kServer, 5);
  Remove(QueueId{2});
  Add(QueueId{3}, kServer, 0);
  EXPECT_FALSE(IsGated(QueueId{1}));
}

TEST_F(FormerRivalsTest, where_time_slices_serve_a_new_queue_it_needs_no_gates) {
  Add(QueueId{1}, kTraining, 0, kShared, true);
  Add(QueueId{2}, kServer, 5, kShared, true);
  EXPECT_TRUE(IsGated(QueueId{1}));
  Remove(QueueId{2});
  EXPECT_FALSE(IsGated(QueueId{1}));
}

TEST_F(FormerRivalsTest, one_process_alone_has_no_gates) {
  Add(QueueId{1}, kTraining, 0);
  Remove(QueueId{1});
  Add(QueueId{2}, kTraining, 0);
  EXPECT_FALSE(IsGated(QueueId{2}));
}

// Clients choose the names of devices.
TEST_F(FormerRivalsTest, the_oldest_is_forgotten_where_there_are_too_many) {
  Add(QueueId{1}, kTraining, 0);
  Add(QueueId{2}, kServer, 5);
  Remove(QueueId{2});
  for (uint64_t i = 0; i < 256; ++i) {
    EXPECT_TRUE(i % 64 != 0 || IsGated(QueueId{1})) << i;
    Add(QueueId{100 + i}, kServer, 5, DeviceId{100 + i});
    Remove(QueueId{100 + i});
  }
  Add(QueueId{3}, kTraining, 0);  // so that the rivals are found anew
  EXPECT_FALSE(IsGated(QueueId{1}));
}

}  // namespace
}  // namespace xsched::sched
