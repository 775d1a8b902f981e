// The promises (promises.h) in random histories (random_history.cc). Deterministic: the seeds are fixed.
//
//   XSCHED_HISTORIES=N  the number of histories in each test
//   XSCHED_SEED=N       another seed
//
// A history that breaks a promise is made smaller and printed as C++. Add it to liveness_histories_test.cc.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "base/testing/tries.h"
#include "sched/sim/random_history.h"
#include "sched/sim/world.h"

namespace xsched::sched::sim {

void showValue(const History& history, std::ostream& out) { out << ToString(history); }

namespace {

// Each takes so long under sanitizers that there a tenth would still be too many.
constexpr int kHistories = Tries(Tries(40'000));
constexpr int kWithLimits = Tries(Tries(10'000));
constexpr int kWithTenants = Tries(Tries(10'000));

uint64_t Setting(const char* name, uint64_t usual) {
  const char* value = std::getenv(name);
  return value == nullptr ? usual : std::strtoull(value, nullptr, 10);
}

void Check(uint64_t seed, int histories, rc::Gen<History> (*random)()) {
  rc::detail::TestParams params;
  params.seed = Setting("XSCHED_SEED", 20'250'000) + seed;
  params.maxSuccess = static_cast<int>(Setting("XSCHED_HISTORIES", static_cast<uint64_t>(histories)));
  std::cout << params.maxSuccess << " histories, seed " << params.seed << std::endl;
  const auto property = [random] {
    const History history = *random();
    const Outcome outcome = Run(history);
    if (!outcome.broken.empty()) RC_FAIL(outcome.broken);
  };
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = "the promises are kept";
  const auto result = rc::detail::checkTestable(property, metadata, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << text.str();
}

TEST(LivenessProperties, the_promises_are_kept_in_random_histories) { Check(1, kHistories, RandomHistory); }
TEST(LivenessProperties, the_promises_are_kept_in_as_many_other_histories) {
  Check(2, kHistories, RandomHistory);
}
TEST(LivenessProperties, the_promises_are_kept_where_processes_have_limits) {
  Check(3, kWithLimits, RandomHistoryWithLimits);
}
TEST(LivenessProperties, the_promises_are_kept_where_processes_are_of_two_tenants) {
  Check(4, kWithTenants, RandomHistoryWithTenants);
}

}  // namespace
}  // namespace xsched::sched::sim
