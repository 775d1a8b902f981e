#include "preempt/queue/reentrancy_guard.h"

#include <gtest/gtest.h>

#include <thread>

namespace xsched::preempt {
namespace {

TEST(ReentrancyGuardTest, it_marks_its_thread_until_the_outermost_one_ends) {
  EXPECT_FALSE(InsideXSched());
  {
    const ReentrancyGuard outer;
    { const ReentrancyGuard inner; }
    EXPECT_TRUE(InsideXSched());
    std::thread([] { EXPECT_FALSE(InsideXSched()); }).join();
  }
  EXPECT_FALSE(InsideXSched());
}

}  // namespace
}  // namespace xsched::preempt
