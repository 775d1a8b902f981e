#include "cli/demo/demo_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace xsched::cli {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(LatencyTable, compares_each_p99_with_that_of_the_first_row) {
  std::vector<std::string> lines = Lines(LatencyTable({{"alone", {2, 2, 2}}, {"together", {3, 4, 5}}}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1], HasSubstr("1.00x"));
  EXPECT_THAT(lines[2], HasSubstr("4.00"));
  EXPECT_THAT(lines[2], HasSubstr("2.50x"));
}

TEST(LatencyTable, has_no_factor_of_nothing) {
  EXPECT_THAT(LatencyTable({{"alone", {}}, {"together", {1}}}), HasSubstr("0.00x"));
}

TEST(LatencyChart, in_ascii_is_ascii) {
  std::string chart = LatencyChart({{"a", {1, 2, 3}}, {"b", {9}}}, true);
  EXPECT_TRUE(std::all_of(chart.begin(), chart.end(), [](char c) { return (c & 0x80) == 0; }));
}

TEST(LatencyChart, shows_a_single_outlier_beside_many) {
  std::vector<double> values(1000, 1.0);
  values.push_back(10);
  std::string row = Lines(LatencyChart({{"a", values}}, true)).at(1);
  EXPECT_EQ(std::count(row.begin(), row.end(), '@'), 1);
  EXPECT_EQ(row.substr(row.size() - 2), ".|");
}

}  // namespace
}  // namespace xsched::cli
