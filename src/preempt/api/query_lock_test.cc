#include "preempt/api/query_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace xsched::preempt {
namespace {

TEST(QueryLockTest, one_thread_has_it_and_another_one_goes_on_without_it) {
  {
    const QueryLock lock;
    EXPECT_TRUE(lock);
    bool other = true;
    std::thread([&] { other = static_cast<bool>(QueryLock()); }).join();
    EXPECT_FALSE(other);
  }
  bool other = false;
  std::thread([&] { other = static_cast<bool>(QueryLock()); }).join();
  EXPECT_TRUE(other);
}

TEST(QueryLockTest, a_child_does_not_inherit_it) {
  const QueryLock lock;
  ASSERT_TRUE(lock);
  const pid_t child = fork();
  if (child == 0) _exit(static_cast<bool>(QueryLock()) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace xsched::preempt
