#include "preempt/queue/query_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace xsched::preempt {
namespace {

constexpr Duration kLong = std::chrono::minutes(1);

TEST(QueryMutexTest, a_thread_that_does_not_get_it_in_time_goes_on_without_it) {
  QueryMutex mutex;
  ASSERT_TRUE(mutex.LockWithin(Duration::zero()));
  bool locked = true;
  std::thread([&] { locked = mutex.LockWithin(std::chrono::milliseconds(1)); }).join();
  EXPECT_FALSE(locked);
  mutex.Unlock();
  std::thread([&] {
    locked = mutex.LockWithin(Duration::zero());
    if (locked) mutex.Unlock();
  }).join();
  EXPECT_TRUE(locked);
}

TEST(QueryMutexTest, a_waiting_thread_gets_it_when_it_is_unlocked) {
  QueryMutex mutex;
  ASSERT_TRUE(mutex.LockWithin(kLong));
  std::atomic<bool> unlocked{false};
  bool locked = false;
  std::thread waiting([&] {
    locked = mutex.LockWithin(kLong) && unlocked;
    mutex.Unlock();
  });
  unlocked = true;
  mutex.Unlock();
  waiting.join();
  EXPECT_TRUE(locked);
}

TEST(QueryMutexTest, a_forked_child_finds_it_free) {
  QueryMutex mutex;
  std::thread([&] {
    ASSERT_TRUE(mutex.LockWithin(kLong));
  }).join();  // such a thread does not exist in a child
  mutex.ResetAfterFork();
  EXPECT_TRUE(mutex.LockWithin(Duration::zero()));
  mutex.Unlock();
}

}  // namespace
}  // namespace xsched::preempt
