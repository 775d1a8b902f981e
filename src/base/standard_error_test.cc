#include "base/standard_error.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"

namespace xsched {
namespace {

volatile sig_atomic_t pipe_signals = 0;

sigset_t PipeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

// During the test, nobody reads standard error, and SIGPIPE is counted.
class StandardErrorTest : public testing::Test {
 protected:
  StandardErrorTest() : saved_(dup(STDERR_FILENO)) {
    pipe_signals = 0;
    struct sigaction count {};
    count.sa_handler = [](int) { pipe_signals = pipe_signals + 1; };
    sigaction(SIGPIPE, &count, &before_);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    Use(ends[1]);
  }
  ~StandardErrorTest() override {
    dup2(saved_.get(), STDERR_FILENO);
    sigaction(SIGPIPE, &before_, nullptr);
  }
  static void Use(int fd) {
    dup2(fd, STDERR_FILENO);
    close(fd);
  }
  static void WriteLine() {
    constexpr std::string_view kLine = "xsched: a line\n";
    WriteToStandardError(kLine.data(), kLine.size());
  }
  static bool IsPending() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
  }

  UniqueFd saved_;
  struct sigaction before_ {};
};

TEST_F(StandardErrorTest, a_line_for_a_reader_that_is_gone_raises_no_signal) {
  errno = ENOENT;
  WriteLine();
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(pipe_signals, 0);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGPIPE), 0);
}

TEST_F(StandardErrorTest, a_line_for_a_socket_whose_other_end_is_gone_raises_no_signal) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  close(ends[0]);
  Use(ends[1]);
  WriteLine();
  EXPECT_EQ(pipe_signals, 0);
}

TEST_F(StandardErrorTest, a_program_that_blocks_the_signal_finds_none_of_ours) {
  const sigset_t pipe = PipeSignal();
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  WriteLine();
  EXPECT_FALSE(IsPending());
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
  EXPECT_EQ(pipe_signals, 0);
}

TEST_F(StandardErrorTest, a_signal_that_is_pending_for_the_program_reaches_it) {
  const sigset_t pipe = PipeSignal();
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  raise(SIGPIPE);
  WriteLine();
  EXPECT_TRUE(IsPending());
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
  EXPECT_EQ(pipe_signals, 1);
}

TEST_F(StandardErrorTest, what_the_program_itself_writes_to_nobody_still_raises_it) {
  WriteLine();
  EXPECT_LT(write(STDERR_FILENO, "x", 1), 0);
  EXPECT_EQ(pipe_signals, 1);
}

}  // namespace
}  // namespace xsched
