// Programs that fork, and programs that start others.
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "linked_program.h"

namespace xsched::hip {
namespace {

class Fork : public LinkedProgram {
 protected:
  // Each test decides where HIP is first used.
  void SetUp() override {}

  // 0: a stream of this process is scheduled.
  int IsScheduled() {
    UseHip();
    if (HasFailure()) return 1;
    if (Append(stream_, 5) != hipSuccess || hipStreamSynchronize(stream_) != hipSuccess) return 2;
    if (Log() != std::vector{5}) return 3;
    return Commands(KeyOf(stream_)) == 1 ? 0 : 4;
  }
  static int WaitFor(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Starts this program with one of its tests.
  static int Start(const char* test) {
    const std::string filter = std::string("--gtest_filter=") + test;
    pid_t child = fork();
    if (child == 0) {
      execl("/proc/self/exe", "hip_program_test", filter.c_str(), nullptr);
      _exit(127);
    }
    return WaitFor(child);
  }
};

TEST_F(Fork, a_child_of_a_program_that_has_not_used_hip_is_scheduled) {
  pid_t child = fork();
  if (child == 0) _exit(IsScheduled());
  EXPECT_EQ(WaitFor(child), 0);
}

// Such a child has none of the runtime's threads: the runtime accepts launches, and nothing runs. With XSched
// it is the same.
TEST_F(Fork, a_child_of_a_program_that_uses_hip_meets_what_it_would_meet_without_xsched) {
  UseHip();
  SUCCEEDS(Append(stream_, 1));
  SUCCEEDS(hipStreamSynchronize(stream_));
  // The parent's hold does not hold the child.
  ASSERT_EQ(XQueueSuspend(QueueOf(stream_), kQueueSuspendFlagNone), kXSchedSuccess);
  pid_t child = fork();
  if (child == 0) {
    int device = -1;
    const bool same = hipGetDevice(&device) == hipSuccess && device == 0 && Append(stream_, 2) == hipSuccess;
    _exit(same ? 0 : 1);
  }
  EXPECT_EQ(WaitFor(child), 0);
  ASSERT_EQ(XQueueResume(QueueOf(stream_), kQueueResumeFlagNone), kXSchedSuccess);
  SUCCEEDS(Append(stream_, 3));
  SUCCEEDS(hipStreamSynchronize(stream_));
  EXPECT_EQ(Commands(KeyOf(stream_)), 2u);
  EXPECT_EQ(Log().back(), 3);
}

TEST_F(Fork, a_program_is_scheduled) { ASSERT_EQ(IsScheduled(), 0); }

TEST_F(Fork, a_program_that_another_one_starts_is_scheduled) {
  EXPECT_EQ(IsScheduled(), 0);
  ASSERT_EQ(XQueueSuspend(QueueOf(stream_), kQueueSuspendFlagNone), kXSchedSuccess);
  EXPECT_EQ(Start("Fork.a_program_is_scheduled"), 0);
  ASSERT_EQ(XQueueResume(QueueOf(stream_), kQueueResumeFlagNone), kXSchedSuccess);
}

}  // namespace
}  // namespace xsched::hip
