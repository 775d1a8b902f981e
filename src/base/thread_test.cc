#include "base/thread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace xsched {
namespace {

struct Scheduling {
  cpu_set_t processors{};
  int policy = -1;
};

Scheduling Own() {
  Scheduling own;
  sched_getaffinity(0, sizeof own.processors, &own.processors);
  own.policy = sched_getscheduler(0);
  return own;
}

// Of a quiet thread that a thread starts which has done `before`.
template <typename Before>
Scheduling OfQuietThread(Before&& before) {
  Scheduling found;
  std::thread([&] {
    before();
    pthread_t thread;
    const auto look = [](void* out) -> void* {
      *static_cast<Scheduling*>(out) = Own();
      return nullptr;
    };
    ASSERT_EQ(StartQuietThread(&thread, look, &found), 0);
    pthread_join(thread, nullptr);
  }).join();
  return found;
}

TEST(QuietThread, may_use_all_processors_of_the_process_although_its_starter_is_bound_to_one) {
  const Scheduling process = Own();
  if (CPU_COUNT(&process.processors) < 2) GTEST_SKIP() << "needs two processors";
  const Scheduling found = OfQuietThread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &process.processors)) CPU_SET(i, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  });
  EXPECT_TRUE(CPU_EQUAL(&found.processors, &process.processors));
}

// On one processor, a thread with such a priority that waits for it in a loop would keep it from running.
TEST(QuietThread, has_the_usual_policy_although_its_starter_has_a_real_time_priority) {
  bool allowed = false;
  const Scheduling found = OfQuietThread([&] {
    const sched_param first{1};
    allowed = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
  });
  if (!allowed) GTEST_SKIP() << "this user may not set real-time priorities";
  EXPECT_EQ(found.policy, SCHED_OTHER);
}

}  // namespace
}  // namespace xsched
