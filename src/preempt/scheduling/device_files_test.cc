#include "preempt/scheduling/device_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/testing/forbid_waiting.h"
#include "preempt/scheduling/testing/device_file.h"

namespace xsched::preempt::testing {
namespace {

size_t Found(int fd) {
  struct stat wanted {};
  fstat(fd, &wanted);
  int fds[kMostDeviceFiles];
  const size_t count = FindDeviceFiles(fds);
  return static_cast<size_t>(std::count_if(fds, fds + count, [&](int found) {
    struct stat status {};
    return fstat(found, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == wanted.st_rdev;
  }));
}

TEST(DeviceFiles, a_device_file_is_found_once_however_often_it_is_open) {
  const UniqueFd file = OpenDeviceFile();
  if (!file) GTEST_SKIP() << "this machine has no device file that this user may open";
  const UniqueFd again(dup(file.get()));
  EXPECT_EQ(Found(file.get()), 1u);
}

TEST(DeviceFiles, what_every_process_may_have_is_not_found) {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd zero(open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(Found(null.get()), 0u);
  EXPECT_EQ(Found(zero.get()), 0u);
}

// Such a file may be open beside it. Meanwhile nothing would be given back.
TEST(DeviceFiles, no_file_is_looked_at_that_may_be_on_a_file_system_that_does_not_answer) {
  const UniqueFd file = OpenDeviceFile();
  if (!file) GTEST_SKIP() << "this machine has no device file that this user may open";
  const pid_t child = fork();
  if (child == 0) {
    if (!xsched::testing::ForbidWaitingFor(file.get())) _exit(2);
    struct stat status {};
    if (fstat(file.get(), &status) == 0) _exit(3);
    int fds[kMostDeviceFiles];
    const size_t count = FindDeviceFiles(fds);
    _exit(std::find(fds, fds + count, file.get()) != fds + count ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "an emulator, without seccomp";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(DeviceFiles, a_file_that_was_not_opened_to_be_used_is_not_found) {
  const UniqueFd file = OpenDeviceFile(O_PATH);
  if (!file) GTEST_SKIP() << "this machine has no device file that this user may open";
  EXPECT_EQ(Found(file.get()), 0u);
}

}  // namespace
}  // namespace xsched::preempt::testing
