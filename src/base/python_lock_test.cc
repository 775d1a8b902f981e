// Of CPython this program has its own functions.
#include "base/python_lock.h"

#include <gtest/gtest.h>

namespace {

int state = 0;
void* own = nullptr;      // the calling thread's state
void* current = nullptr;  // of whoever holds the lock
int releases = 0;

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* PyGILState_GetThisThreadState() { return own; }
EXPORT void* _PyThreadState_UncheckedGet() { return current; }
EXPORT void* PyEval_SaveThread() {
  ++releases;
  void* saved = current;
  current = nullptr;
  return saved;
}
EXPORT void PyEval_RestoreThread(void* saved) { current = saved; }

namespace xsched {
namespace {

class PythonLock : public testing::Test {
 protected:
  void SetUp() override { releases = 0; }
};

TEST_F(PythonLock, a_thread_that_holds_it_releases_it_for_a_while) {
  own = current = &state;
  {
    PythonLockReleased released;
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(releases, 1);
  }
  EXPECT_EQ(current, &state);
}

TEST_F(PythonLock, while_another_thread_holds_it_nothing_is_done) {
  int others = 0;
  own = &state;
  current = &others;
  { PythonLockReleased released; }
  EXPECT_EQ(releases, 0);
  EXPECT_EQ(current, &others);
}

TEST_F(PythonLock, of_a_thread_that_python_does_not_know_nothing_is_done) {
  own = current = nullptr;
  { PythonLockReleased released; }
  EXPECT_EQ(releases, 0);
}

}  // namespace
}  // namespace xsched
