#include "preempt/gates/waiters.h"

#include <gtest/gtest.h>

#include <thread>

namespace xsched::preempt {
namespace {

TEST(WaitersTest, a_thread_waits_until_what_it_waits_for_is_so_and_it_is_notified) {
  Waiters waiters;
  std::atomic<int> done{0};
  std::atomic<bool> returned{false};
  std::thread waiting([&] {
    waiters.Await([&] { return done == 2; });
    returned = true;
  });
  done = 1;
  waiters.Notify();
  EXPECT_FALSE(returned) << "it is not what it waits for";
  done = 2;
  waiters.NotifyIfAny();
  waiting.join();
  EXPECT_TRUE(returned);
}

TEST(WaitersTest, a_nap_ends_at_its_time) {
  Waiters waiters;
  waiters.Nap(TimePoint{});
  const TimePoint deadline = MonotonicClock::now() + std::chrono::milliseconds(1);
  waiters.Nap(deadline);
  // It may also end earlier, which callers expect. It must not last.
  EXPECT_LT(MonotonicClock::now(), deadline + std::chrono::minutes(1));
}

}  // namespace
}  // namespace xsched::preempt
