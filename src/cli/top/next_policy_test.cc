#include "cli/top/next_policy.h"

#include <gtest/gtest.h>

#include <set>

namespace xsched::cli {
namespace {

TEST(NextPolicy, comes_round_to_the_first_after_the_last) {
  std::set<std::string> seen;
  std::string setting = "HPF";
  for (size_t i = 0; i < sched::Policies().size(); ++i) {
    seen.insert(setting);
    const sched::Policy* next = NextPolicy(setting);
    ASSERT_NE(next, nullptr) << setting;
    setting = next->info().name;
  }
  EXPECT_EQ(setting, "HPF");
  EXPECT_EQ(seen.size(), sched::Policies().size());
}

TEST(NextPolicy, is_none_where_it_would_replace_a_chain) {
  EXPECT_EQ(NextPolicy("EEVDF:tenant/KEDF"), nullptr);
  EXPECT_EQ(NextPolicy("UP:tenant"), nullptr);
}

}  // namespace
}  // namespace xsched::cli
