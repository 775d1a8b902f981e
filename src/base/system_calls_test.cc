#include "base/system_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>

namespace xsched {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(SystemCalls, descriptors_of_a_range_are_closed_and_the_others_stay) {
  for (auto* close_range : {CloseDescriptors, CloseDescriptorsOneByOne}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int fd : {50, 51, 60, 61}) dup2(STDERR_FILENO, fd);
      close_range(51, 60);
      _exit(IsOpen(50) && !IsOpen(51) && !IsOpen(60) && IsOpen(61) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(SystemCalls, memory_can_be_sealed) {
  const int fd = MemfdCreate("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
  close(fd);
}

// Machines whose vm.memfd_noexec is 2 refuse all other memory.
TEST(SystemCalls, memory_that_can_be_sealed_cannot_be_executed_where_the_kernel_knows_that) {
  constexpr unsigned kNoExecSeal = 8;
  const auto known = static_cast<int>(syscall(SYS_memfd_create, "known", kNoExecSeal));
  if (known < 0) GTEST_SKIP() << "this kernel does not";
  close(known);
  const int fd = MemfdCreate("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  struct stat status {};
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH), 0u);
  EXPECT_NE(fchmod(fd, 0777), 0);
  close(fd);
}

TEST(SystemCalls, random_numbers_fill_the_memory) {
  std::array<unsigned char, 64> memory{};
  EXPECT_EQ(GetRandom(memory.data(), memory.size(), GRND_NONBLOCK), static_cast<ssize_t>(memory.size()));
  EXPECT_NE(memory, (std::array<unsigned char, 64>{}));
}

}  // namespace
}  // namespace xsched
