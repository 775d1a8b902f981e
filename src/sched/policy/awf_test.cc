// Active window first.
#include <gtest/gtest.h>

#include "sched/testing/timeline.h"

namespace xsched::sched::awf {
namespace {

using std::chrono::milliseconds;

class ActiveWindowFirst : public Timeline {
 protected:
  ActiveWindowFirst() {
    scheduler_.SetPolicy(*FindPolicy(kPolicyActiveWindowFirst));
    sliceable_ = false;
    for (uint64_t id : {1, 2, 3}) {
      Add(id, 0);
      Busy(id);
    }
  }
  void SetActive(uint64_t id, bool active) {
    scheduler_.SetFacts(QueueId{id}, {.window_active = active});
    Decide();
  }
};

TEST_F(ActiveWindowFirst, all_run_while_no_window_is_active) { EXPECT_TRUE(Runs(1) && Runs(2) && Runs(3)); }

TEST_F(ActiveWindowFirst, the_active_process_runs_first_and_the_others_when_it_has_no_work) {
  SetActive(2, true);
  EXPECT_TRUE(!Runs(1) && Runs(2) && !Runs(3));
  Finish(2);
  Pass(milliseconds(1));
  EXPECT_TRUE(Runs(1) && Runs(3));
}

TEST_F(ActiveWindowFirst, the_active_processes_of_several_displays_run_at_the_same_time) {
  SetActive(1, true);
  SetActive(3, true);
  EXPECT_TRUE(Runs(1) && !Runs(2) && Runs(3));
  SetActive(1, false);
  EXPECT_TRUE(!Runs(1) && !Runs(2) && Runs(3));
}

}  // namespace
}  // namespace xsched::sched::awf
