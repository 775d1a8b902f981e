#include "base/lock_order.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/driver_function.h"
#include "base/driver_library.h"
#include "base/mutex.h"

namespace xsched {
namespace {

constinit Mutex<LockRank::kStreamRegistration> outer;  // allows calls of the driver
constinit Mutex<LockRank::kSliceSetting> kernel;       // allows requests to the kernel's
constinit Mutex<LockRank::kQueueTable> table;          // allows neither
constinit Mutex<LockRank::kPointerMap> inner;

int Seven() { return 7; }
constexpr DriverFunction<int (*)()> kDriverCall = &Seven;

TEST(LockOrder, locks_are_taken_from_the_top_of_the_list_to_the_bottom) {
  for (int i = 0; i < 2; ++i) {
    MutexLock first(outer);
    MutexLock second(table);
    MutexLock third(inner);
  }
}

TEST(LockOrder, a_lock_above_one_that_is_held_is_an_error_which_names_both) {
  EXPECT_DEATH(
      {
        MutexLock first(inner);
        MutexLock second(table);
      },
      "kQueueTable is acquired while kPointerMap is held");
}

TEST(LockOrder, a_second_lock_of_one_rank_is_an_error) {
  static constinit Mutex<LockRank::kQueueTable> another;
  EXPECT_DEATH(
      {
        MutexLock first(table);
        MutexLock second(another);
      },
      "kQueueTable is acquired while kQueueTable is held");
}

TEST(LockOrder, a_lock_that_is_tried_has_its_place_as_well) {
  EXPECT_DEATH(
      {
        MutexLock first(inner);
        if (table.TryLock()) table.Unlock();
      },
      "kQueueTable is acquired while kPointerMap is held");
}

TEST(LockOrder, a_lock_that_was_not_to_be_had_is_not_held) {
  MutexLock first(table);
  std::thread([] {
    EXPECT_FALSE(table.TryLock());
    MutexLock second(outer);
  }).join();
}

TEST(LockOrder, locks_may_be_given_back_in_any_order) {
  outer.Lock();
  table.Lock();
  outer.Unlock();
  inner.Lock();
  inner.Unlock();
  table.Unlock();
  MutexLock again(outer);
}

TEST(LockOrder, each_thread_has_its_own_locks) {
  MutexLock first(inner);
  std::thread([] { MutexLock second(table); }).join();
}

TEST(LockOrder, a_wait_keeps_the_locks_place) {
  Condition condition;
  table.Lock();
  condition.WaitUntil(table, MonotonicClock::now());
  table.AssertHeld();
  table.Unlock();
}

TEST(LockOrder, a_lock_that_a_thread_says_it_holds_is_looked_for) {
  EXPECT_DEATH(table.AssertHeld(), "kQueueTable is not held");
}

TEST(LockOrder, the_driver_is_called_under_locks_only_that_allow_it) {
  EXPECT_EQ(kDriverCall(), 7);
  {
    MutexLock lock(outer);
    EXPECT_EQ(kDriverCall(), 7);
  }
  EXPECT_DEATH(
      {
        MutexLock lock(kernel);
        kDriverCall();
      },
      "the driver is called while kSliceSetting is held");
}

TEST(LockOrder, the_kernels_driver_is_called_under_locks_only_that_allow_it) {
  {
    MutexLock first(outer);
    MutexLock second(kernel);
    lock_order::CheckCall(Calls::kKernel);
  }
  EXPECT_DEATH(
      {
        MutexLock lock(table);
        lock_order::CheckCall(Calls::kKernel);
      },
      "the kernel's driver is called while kQueueTable is held");
}

TEST(LockOrder, a_function_of_the_driver_that_is_not_there_can_be_asked_for_under_any_lock) {
  constexpr DriverFunction<int (*)()> kNone = nullptr;
  MutexLock lock(table);
  EXPECT_TRUE(kNone == nullptr);
  EXPECT_TRUE(kDriverCall != nullptr);
}

TEST(LockOrder, a_forked_child_holds_nothing_of_what_was_held_over_the_fork) {
  inner.Lock();
  const pid_t child = fork();
  if (child == 0) {
    inner.ResetAfterFork();
    table.Lock();
    _exit(0);
  }
  inner.Unlock();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(LockOrder, the_dynamic_linker_is_asked_for_a_drivers_functions_only_where_the_driver_may_be_called) {
  constexpr const char* kNames[] = {"getpid"};
  void* function = nullptr;
  {
    MutexLock lock(outer);
    FindFunctions(RTLD_DEFAULT, kNames, 1, &function);
    EXPECT_NE(function, nullptr);
  }
  EXPECT_DEATH(
      {
        MutexLock lock(table);
        FindFunctions(RTLD_DEFAULT, kNames, 1, &function);
      },
      "kQueueTable");
}

}  // namespace
}  // namespace xsched
