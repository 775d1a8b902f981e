#include "preempt/queue/driver_requests.h"

#include <gtest/gtest.h>

#include <thread>

namespace xsched::preempt {
namespace {

TEST(NoDriverCallsTest, it_holds_for_its_thread_until_the_outermost_one_ends) {
  EXPECT_FALSE(NoDriverCalls::Here());
  {
    const NoDriverCalls outer;
    { const NoDriverCalls inner; }
    EXPECT_TRUE(NoDriverCalls::Here());
    std::thread([] { EXPECT_FALSE(NoDriverCalls::Here()); }).join();
  }
  EXPECT_FALSE(NoDriverCalls::Here());
}

}  // namespace
}  // namespace xsched::preempt
