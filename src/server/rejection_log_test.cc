#include "server/rejection_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

namespace xsched::server {
namespace {

class RejectionLogTest : public ::testing::Test {
 protected:
  RejectionLogTest() : former_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_)));
    spdlog::set_pattern("%v");
  }
  ~RejectionLogTest() override { spdlog::set_default_logger(former_); }
  // What was logged since the last call.
  std::string Logged() {
    std::string logged = text_.str();
    text_.str("");
    return logged;
  }

  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> former_;
  TimePoint now_{std::chrono::hours(1)};
  const Peer peer_{42, 1000, {}};
};

TEST_F(RejectionLogTest, a_rejection_says_whose_connection_was_closed_and_why) {
  RejectionLog log;
  log.Add(peer_, "no hello", now_);
  EXPECT_EQ(Logged(), "closed the connection of pid 42 (user 1000): no hello\n");
  EXPECT_EQ(log.count(), 1u);
}

TEST_F(RejectionLogTest, many_rejections_are_one_line_per_second_which_counts_them) {
  RejectionLog log;
  for (int i = 0; i < 1000; ++i) log.Add(peer_, "no hello", now_);
  EXPECT_EQ(Logged(), "closed the connection of pid 42 (user 1000): no hello\n");
  log.Add(peer_, "no hello", now_ + std::chrono::milliseconds(999));
  EXPECT_EQ(Logged(), "");
  log.Add(peer_, "a malformed message", now_ + std::chrono::seconds(1));
  EXPECT_EQ(Logged(),
            "closed the connection of pid 42 (user 1000): a malformed message (1000 more closed before)\n");
  EXPECT_EQ(log.count(), 1002u);
}

}  // namespace
}  // namespace xsched::server
