#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>

namespace xsched {
namespace {

using namespace std::chrono_literals;

// As those of the process's agent: a constant until a thread waits.
constinit Condition changed;
constinit Mutex<LockRank::kAgent> mutex;

TEST(Condition, a_wait_with_a_deadline_ends_when_the_monotonic_clock_has_reached_it) {
  const TimePoint deadline = MonotonicClock::now() + 30ms;
  MutexLock lock(mutex);
  while (MonotonicClock::now() < deadline) changed.WaitUntil(mutex, deadline);
  EXPECT_LT(MonotonicClock::now() - deadline, 20s);
}

TEST(Condition, a_thread_that_is_canceled_while_it_waits_gives_the_mutex_back) {
  Condition condition;
  Mutex<LockRank::kAgent> own;
  struct Waits {
    Condition& condition;
    Mutex<LockRank::kAgent>& mutex;
    bool waiting = false;
    bool go_on = false;
  } waits{condition, own};
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  auto& its = *static_cast<Waits*>(argument);
                  {
                    MutexLock lock(its.mutex);
                    its.waiting = true;
                    while (!its.go_on) its.condition.Wait(its.mutex);
                  }
                  pthread_testcancel();
                  return nullptr;
                },
                &waits),
            0);
  for (bool waiting = false; !waiting; std::this_thread::yield()) {
    MutexLock lock(own);
    waiting = waits.waiting;
  }
  ASSERT_EQ(pthread_cancel(thread), 0);
  {
    MutexLock lock(own);
    waits.go_on = true;
    condition.NotifyAll();
  }
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED) << "as soon as it has given the mutex back";
  MutexLock lock(own);
}

TEST(Condition, a_deadline_that_is_over_does_not_wait) {
  MutexLock lock(mutex);
  const TimePoint before = MonotonicClock::now();
  changed.WaitUntil(mutex, before - 1h);
  EXPECT_LT(MonotonicClock::now() - before, 20s);
}

TEST(Condition, a_notification_reaches_threads_that_waited_first_or_come_later) {
  Condition condition;
  Mutex<LockRank::kAgent> own;
  condition.NotifyAll();  // nobody waits
  bool ready = false;
  auto wait = [&] {
    MutexLock lock(own);
    while (!ready) condition.Wait(own);
  };
  std::thread first(wait);
  std::thread second(wait);
  {
    MutexLock lock(own);
    ready = true;
  }
  condition.NotifyAll();
  first.join();
  second.join();
}

}  // namespace
}  // namespace xsched
