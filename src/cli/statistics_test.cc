#include "cli/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;

TEST(Percentile, is_a_value_that_occurred_whatever_their_order) {
  std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(Percentile(values, 0.0), 1);
  EXPECT_EQ(Percentile(values, 0.2), 1);
  EXPECT_EQ(Percentile(values, 0.21), 2);
  EXPECT_EQ(Percentile(values, 0.5), 3);
  EXPECT_EQ(Percentile(values, 0.99), 5);
  EXPECT_EQ(Percentile(values, 1.0), 5);
}

TEST(Percentile, of_nothing_is_zero_and_of_one_value_that_value) {
  EXPECT_EQ(Percentile({}, 0.5), 0);
  EXPECT_EQ(Percentile({7}, 0.0), 7);
  EXPECT_EQ(Percentile({7}, 0.99), 7);
}

TEST(Percentile, the_99th_of_a_hundred_leaves_out_the_worst_one) {
  std::vector<double> values(99, 1.0);
  values.push_back(100);
  EXPECT_EQ(Percentile(values, 0.99), 1);
  values.push_back(100);
  EXPECT_EQ(Percentile(values, 0.99), 100);
}

TEST(Histogram, counts_what_lies_beyond_in_the_outermost_parts) {
  EXPECT_THAT(Histogram({-5, 0, 0.9, 1, 2.5, 3.99, 4, 50}, 0, 4, 4), ElementsAre(3, 1, 1, 3));
}

TEST(Histogram, of_an_empty_range_is_empty) { EXPECT_THAT(Histogram({1, 2}, 3, 3, 2), ElementsAre(0, 0)); }

}  // namespace
}  // namespace xsched::cli
