#include "cli/demo/hashcat.h"

#include <gtest/gtest.h>

namespace xsched::cli {
namespace {

using namespace std::chrono_literals;

constexpr HashcatLog::TimePoint kStart{};

TEST(Hashcat, two_at_the_same_time_have_different_sessions) {
  EXPECT_NE(HashcatCommand("/tmp/one"), HashcatCommand("/tmp/other"));
}

TEST(Hashcat, progress_has_the_time_at_which_its_line_was_complete) {
  HashcatLog log;
  log.Add("{\"session\": \"a\", \"progr", kStart + 1s);
  EXPECT_TRUE(log.lines().empty());
  log.Add("ess\": [500, 6634]}\n\n{\"progress\": [700,", kStart + 2s);
  log.Add(" 6634]}\n", kStart + 4s);
  ASSERT_EQ(log.lines().size(), 2u);
  EXPECT_EQ(log.lines()[0].arrived, kStart + 2s);
  EXPECT_EQ(log.lines()[0].candidates, 500);
  EXPECT_EQ(log.lines()[1].arrived, kStart + 4s);
  EXPECT_EQ(CandidateRate(log.lines()), 100);
}

TEST(Hashcat, what_is_not_about_progress_is_passed_over) {
  HashcatLog log;
  log.Add(
      "hashcat (v6.2.6) starting\n\n[s]tatus [p]ause\n{\"progress\": []}\n{\"progress\": [\"1\"]}\n{\n[1]\n",
      kStart);
  EXPECT_TRUE(log.lines().empty());
}

TEST(Hashcat, there_is_no_rate_without_two_moments) {
  std::vector<HashcatProgress> lines;
  EXPECT_EQ(CandidateRate(lines), 0);
  lines.push_back({kStart, 10});
  EXPECT_EQ(CandidateRate(lines), 0);
  lines.push_back({kStart, 20});
  EXPECT_EQ(CandidateRate(lines), 0);
}

}  // namespace
}  // namespace xsched::cli
