#include "base/guarded_fd.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace xsched {
namespace {

UniqueFd NewSocket() { return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

TEST(GuardedFd, is_at_a_high_number_and_not_inherited) {
  GuardedFd fd{NewSocket()};
  EXPECT_GT(fd.get(), 200);
  EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE(fd.Intact());
}

TEST(GuardedFd, knows_that_the_program_has_closed_it) {
  GuardedFd fd{NewSocket()};
  close(fd.get());
  EXPECT_FALSE(fd.Intact());
}

TEST(GuardedFd, takes_no_other_file_in_its_place_for_itself_and_does_not_close_it) {
  UniqueFd other(memfd_create("the program's", MFD_CLOEXEC));
  for (int i = 0; i < 2; ++i) {
    GuardedFd fd{i == 0 ? NewSocket() : UniqueFd(eventfd(0, EFD_CLOEXEC))};
    const int number = fd.get();
    ASSERT_EQ(dup2(other.get(), number), number);
    EXPECT_FALSE(fd.Intact());
    fd.Reset();
    EXPECT_GE(fcntl(number, F_GETFD), 0) << "the program's file was closed";
    close(number);
  }
}

TEST(GuardedFd, takes_no_other_file_of_the_same_kind_for_itself) {
  GuardedFd fd{UniqueFd(eventfd(0, EFD_CLOEXEC))};
  const int number = fd.get();
  UniqueFd other(eventfd(0, EFD_CLOEXEC));
  ASSERT_EQ(dup2(other.get(), number), number);
  EXPECT_FALSE(fd.Intact());
  close(number);
}

TEST(GuardedFd, knows_its_file_if_the_program_has_saved_and_restored_it) {
  GuardedFd fd{UniqueFd(eventfd(0, EFD_CLOEXEC))};
  const int number = fd.get();
  UniqueFd copy(dup(number));
  close(number);
  EXPECT_FALSE(fd.Intact());
  ASSERT_EQ(dup2(copy.get(), number), number);
  EXPECT_TRUE(fd.Intact());
}

TEST(GuardedFd, is_closed_when_its_owner_goes) {
  int number;
  {
    GuardedFd first{NewSocket()};
    number = first.get();
    GuardedFd second{std::move(first)};
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): this is what is asked
    EXPECT_EQ(second.get(), number);
  }
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace xsched
