#include "sched/sim/history.h"

#include <gmock/gmock.h>

namespace xsched::sched::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HistoryTest, it_is_printed_as_the_code_that_makes_it_without_what_is_usual) {
  History history{.policy = kDefaultPolicy, .length = milliseconds(7)};
  history.queues.push_back({.priority = 5});
  const std::string text = ToString(history);
  EXPECT_THAT(text, HasSubstr(".length = milliseconds(7)"));
  EXPECT_THAT(text, HasSubstr("{.process = 0, .priority = 5},"));
  EXPECT_THAT(text, Not(HasSubstr("events")));
}

TEST(HistoryTest, policies_are_printed_by_their_names_and_what_is_none_by_its_number) {
  for (PolicyGetter policy : Policies()) {
    EXPECT_THAT(
        ToString(History{.policy = policy().type()}),
        HasSubstr(std::string(".policy = FindPolicyByName(\"") + policy().info().name + "\")->type(),"));
  }
  EXPECT_THAT(ToString(History{.policy = kPolicyUnknown}),
              HasSubstr(".policy = static_cast<XPolicyType>(0),"));
}

}  // namespace
}  // namespace xsched::sched::sim
