#include "cli/distribution.h"

#include <gtest/gtest.h>

namespace xsched::cli {
namespace {

using std::chrono::microseconds;

TEST(Distribution, has_percentiles_near_the_exact_ones_and_the_exact_largest) {
  Distribution all;
  for (int i = 1; i <= 10'000; ++i) all.Add(microseconds(i));
  EXPECT_EQ(all.count(), 10'000u);
  EXPECT_NEAR(static_cast<double>(all.Percentile(0.5).count()), 5e6, 5e6 * 0.0005 + 1000);
  EXPECT_NEAR(static_cast<double>(all.Percentile(0.99).count()), 9.9e6, 9.9e6 * 0.0005 + 1000);
  EXPECT_EQ(all.largest(), microseconds(10'000));
  EXPECT_EQ(all.Percentile(1), microseconds(10'000));
}

TEST(Distribution, of_nothing_is_zero) {
  EXPECT_EQ(Distribution().Percentile(0.99), Duration::zero());
  EXPECT_EQ(Distribution().largest(), Duration::zero());
}

TEST(Distribution, of_two_together_is_that_of_all_values) {
  Distribution one, other;
  one.Add(microseconds(1));
  other.Add(microseconds(3));
  other.Add(microseconds(3));
  one.Add(other);
  EXPECT_EQ(one.count(), 3u);
  EXPECT_EQ(one.largest(), microseconds(3));
  EXPECT_EQ(one.Percentile(0.5), microseconds(3));
  EXPECT_NEAR(static_cast<double>(one.Percentile(0.1).count()), 1000, 1);
}

TEST(Distribution, is_counted_in_parts_of_equal_factors_and_what_is_outside_in_the_outermost) {
  Distribution all;
  for (int us : {1, 3, 5, 50, 500, 900, 5000}) all.Add(microseconds(us));
  EXPECT_EQ(all.CountsBetween(microseconds(1), microseconds(1000), 3), (std::vector<uint64_t>{3, 1, 3}));
  EXPECT_EQ(all.CountsBetween(microseconds(10), microseconds(100), 2), (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(Distribution().CountsBetween(microseconds(1), microseconds(10), 2),
            (std::vector<uint64_t>{0, 0}));
}

}  // namespace
}  // namespace xsched::cli
