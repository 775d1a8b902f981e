#include "held.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace xsched::hip {

void ExpectHeld(XQueueHandle queue, const std::function<hipError_t()>& launch,
                const std::function<bool()>& has_run) {
  ASSERT_NE(queue, 0u);
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  std::atomic<bool> returned{false};
  std::thread launcher([&] {
    EXPECT_EQ(launch(), hipSuccess);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(returned);
  EXPECT_FALSE(has_run());
  EXPECT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  launcher.join();
}

bool WaitUntil(const std::function<bool()>& condition) {
  for (auto begin = std::chrono::steady_clock::now(); !condition();) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(10)) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace xsched::hip
