#include "base/sorted_names.h"

#include <gtest/gtest.h>

namespace xsched {
namespace {

constexpr const char* kNames[] = {"bar", "foo", "foo", "quux"};

int First(const char* name, int count = 4) {
  return LowerBound(kNames, count, name, [](const char* item) { return item; });
}

TEST(SortedNames, have_the_first_that_is_not_before_a_name) {
  EXPECT_EQ(First("a"), 0);
  EXPECT_EQ(First("bar"), 0);
  EXPECT_EQ(First("bas"), 1);
  EXPECT_EQ(First("foo"), 1);
  EXPECT_EQ(First("quux"), 3);
  EXPECT_EQ(First("z"), 4) << "none";
  EXPECT_EQ(First("foo", 0), 0) << "an empty table";
}

TEST(SortedNames, have_an_index_of_those_that_are_among_them) {
  EXPECT_EQ(IndexOf("bar", kNames, 4), 0);
  EXPECT_EQ(IndexOf("quux", kNames, 4), 3);
  EXPECT_EQ(IndexOf("fo", kNames, 4), -1);
  EXPECT_EQ(IndexOf("z", kNames, 4), -1);
}

}  // namespace
}  // namespace xsched
