#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace xsched {
namespace {

// During the test, standard error is a pipe.
class LogTest : public testing::Test {
 protected:
  LogTest() : saved_(dup(STDERR_FILENO)) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_.Reset(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
  }
  ~LogTest() override { dup2(saved_.get(), STDERR_FILENO); }

  UniqueFd saved_;
  UniqueFd read_;
};

TEST_F(LogTest, a_message_is_one_line) {
  Log(LogLevel::kError, "%d of %s", 3, "them");
  char text[64] = "";
  ASSERT_GT(read(read_.get(), text, sizeof text - 1), 0);
  EXPECT_STREQ(text, "xsched: 3 of them\n");
}

TEST_F(LogTest, a_thread_that_logs_into_a_full_pipe_goes_on) {
  const std::string line(400, 'x');
  for (int i = 0; i < 1000; ++i) Log(LogLevel::kError, "%s", line.c_str());
}

}  // namespace
}  // namespace xsched
