#include "sched/sim/timers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace xsched::sched::sim {
namespace {

TEST(Timers, the_first_is_the_one_that_is_due_first_and_of_several_the_one_with_the_smallest_number) {
  constexpr size_t kCount = 37;
  std::mt19937 random(1);
  Timers timers(kCount);
  std::vector<TimePoint> due(kCount, kNever);
  for (int i = 0; i < 5000; ++i) {
    const size_t number = random() % kCount;
    due[number] = random() % 5 == 0 ? kNever : TimePoint(Duration(random() % 20));
    timers.Set(number, due[number]);
    const auto first = std::min_element(due.begin(), due.end());
    ASSERT_EQ(timers.next(), *first);
    ASSERT_EQ(timers.first(), static_cast<size_t>(first - due.begin()));
  }
}

TEST(Timers, without_any_nothing_is_due) { EXPECT_EQ(Timers(0).next(), kNever); }

}  // namespace
}  // namespace xsched::sched::sim
