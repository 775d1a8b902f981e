#include "base/user_ids.h"

#include <gtest/gtest.h>

namespace xsched {
namespace {

constexpr const char* kAll = "         0          0 4294967295\n";
constexpr const char* kContainer = "         0       1000          1\n         1     100000      65536\n";
constexpr const char* kOverflow = "65534\n";

TEST(UserIds, nobody_is_one_user_where_all_users_are_known) {
  EXPECT_FALSE(StandsForSeveral(65534, kAll, kOverflow));
}

TEST(UserIds, in_a_user_namespace_the_overflow_id_stands_for_all_whom_it_does_not_know) {
  EXPECT_TRUE(StandsForSeveral(65534, kContainer, kOverflow));
  EXPECT_TRUE(StandsForSeveral(65534, kContainer, "")) << "the kernel's default";
  EXPECT_TRUE(StandsForSeveral(99, kContainer, "99\n"));
}

TEST(UserIds, other_ids_are_one_user_each) {
  EXPECT_FALSE(StandsForSeveral(0, kContainer, kOverflow));
  EXPECT_FALSE(StandsForSeveral(1000, kContainer, kOverflow));
  EXPECT_FALSE(StandsForSeveral(65534, kContainer, "99\n"));
}

}  // namespace
}  // namespace xsched
