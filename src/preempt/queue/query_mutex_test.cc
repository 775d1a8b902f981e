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

TEST(QueryMutexTest, those_that_share_it_do_not_wait_for_each_other) {
  QueryMutex mutex;
  ASSERT_TRUE(mutex.ShareWithin(Duration::zero()));
  std::thread([&] {
    EXPECT_TRUE(mutex.ShareWithin(Duration::zero()));
    mutex.Unshare();
  }).join();
  std::thread([&] { EXPECT_FALSE(mutex.LockWithin(Duration::zero())); }).join();
  mutex.Unshare();
  EXPECT_TRUE(mutex.LockWithin(Duration::zero()));
  mutex.Unlock();
}

// Otherwise queries without end, of many threads, would leave no moment for it.
TEST(QueryMutexTest, who_wants_it_alone_goes_before_later_ones_that_would_share_it) {
  QueryMutex mutex;
  ASSERT_TRUE(mutex.ShareWithin(Duration::zero()));
  bool locked = false;
  std::thread alone([&] {
    locked = mutex.LockWithin(kLong);
    if (locked) mutex.Unlock();
  });
  const auto can_be_shared = [&] {
    bool shared = false;
    std::thread([&] {
      shared = mutex.ShareWithin(Duration::zero());
      if (shared) mutex.Unshare();
    }).join();
    return shared;
  };
  while (can_be_shared()) std::this_thread::yield();
  mutex.Unshare();
  alone.join();
  EXPECT_TRUE(locked);
  EXPECT_TRUE(can_be_shared());
}

TEST(QueryMutexTest, who_gave_up_keeps_nobody_from_sharing_it) {
  QueryMutex mutex;
  ASSERT_TRUE(mutex.ShareWithin(Duration::zero()));
  std::thread([&] { EXPECT_FALSE(mutex.LockWithin(std::chrono::milliseconds(1))); }).join();
  std::thread([&] {
    EXPECT_TRUE(mutex.ShareWithin(Duration::zero()));
    mutex.Unshare();
  }).join();
  mutex.Unshare();
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
