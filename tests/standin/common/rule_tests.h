// Checks that each rule of a stand-in has a test of its name, and each test of its suites a rule.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>

#include "driver_rule.h"

namespace standin {

// `suites`: the end of the names of the suites that hold these tests.
inline void ExpectATestOfEach(std::span<const DriverRule> rules, const std::string& suites) {
  std::set<std::string> tests;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    if (!std::string(suite.name()).ends_with(suites)) continue;
    for (int j = 0; j < suite.total_test_count(); ++j) tests.insert(suite.GetTestInfo(j)->name());
  }
  std::set<std::string> names;
  for (const DriverRule& rule : rules) names.insert(rule.name);
  EXPECT_EQ(tests, names);
}

}  // namespace standin
