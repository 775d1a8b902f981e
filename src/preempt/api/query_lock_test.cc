#include "preempt/api/query_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace xsched::preempt {
namespace {

template <typename Lock>
bool AnotherThreadGets() {
  bool gets = false;
  std::thread([&gets] { gets = static_cast<bool>(Lock()); }).join();
  return gets;
}

TEST(QueryLockTest, queries_of_several_threads_do_not_wait_for_each_other) {
  const QueryLock lock;
  EXPECT_TRUE(lock);
  EXPECT_TRUE(AnotherThreadGets<QueryLock>());
}

TEST(QueryLockTest, no_query_is_made_while_a_capture_begins) {
  {
    const CaptureLock lock;
    EXPECT_TRUE(lock);
    EXPECT_FALSE(AnotherThreadGets<QueryLock>());
    EXPECT_FALSE(AnotherThreadGets<CaptureLock>());
  }
  EXPECT_TRUE(AnotherThreadGets<QueryLock>());
}

TEST(QueryLockTest, a_capture_begins_without_it_if_a_query_blocks) {
  {
    const QueryLock lock;
    EXPECT_FALSE(AnotherThreadGets<CaptureLock>());
    EXPECT_TRUE(AnotherThreadGets<QueryLock>());
  }
  EXPECT_TRUE(AnotherThreadGets<CaptureLock>());
}

template <typename Lock>
void ExpectFreeInChild() {
  const Lock lock;
  ASSERT_TRUE(lock);
  const pid_t child = fork();
  if (child == 0) _exit(static_cast<bool>(CaptureLock()) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(QueryLockTest, a_child_inherits_neither) {
  ExpectFreeInChild<QueryLock>();
  ExpectFreeInChild<CaptureLock>();
}

}  // namespace
}  // namespace xsched::preempt
