#include "base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace xsched {
namespace {

using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

// There is one warning per name and process, so each test of warnings uses its own names.
void Set(const char* name, const char* value) { ASSERT_EQ(setenv(name, value, 1), 0); }

TEST(Env, unset_and_empty_are_silently_nothing) {
  unsetenv("XT_UNSET");
  Set("XT_EMPTY", "");
  CaptureStderr();
  for (const char* name : {"XT_UNSET", "XT_EMPTY"}) {
    EXPECT_EQ(EnvInt(name, 0, 10), std::nullopt);
    EXPECT_EQ(EnvBool(name), std::nullopt);
    EXPECT_EQ(EnvText(name), nullptr);
  }
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(Env, whole_numbers_in_the_range_are_taken_with_its_ends) {
  for (int64_t value : {-255, -1, 0, 255}) {
    Set("XT_NUMBER", std::to_string(value).c_str());
    EXPECT_EQ(EnvInt("XT_NUMBER", -255, 255), value);
  }
}

TEST(Env, what_is_no_whole_number_in_the_range_is_refused) {
  for (const char* value : {"-256", "256", "1.5", "12ms", "abc", "99999999999999999999", "1 2"}) {
    Set("XT_BAD_NUMBER", value);
    EXPECT_EQ(EnvInt("XT_BAD_NUMBER", -255, 255), std::nullopt) << value;
  }
}

TEST(Env, a_bad_number_warns_once_with_name_value_and_range) {
  Set("XT_WARNED_NUMBER", "fast");
  CaptureStderr();
  EXPECT_EQ(EnvInt("XT_WARNED_NUMBER", 3, 14), std::nullopt);
  const std::string warning = GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("XT_WARNED_NUMBER=fast"));
  EXPECT_THAT(warning, HasSubstr("from 3 to 14"));

  CaptureStderr();
  EXPECT_EQ(EnvInt("XT_WARNED_NUMBER", 3, 14), std::nullopt);
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(Env, switches_are_read_in_any_case) {
  for (const char* value : {"ON", "on", "1", "True", "YES"}) {
    Set("XT_SWITCH", value);
    EXPECT_EQ(EnvBool("XT_SWITCH"), true) << value;
  }
  for (const char* value : {"OFF", "Off", "0", "false", "no"}) {
    Set("XT_SWITCH", value);
    EXPECT_EQ(EnvBool("XT_SWITCH"), false) << value;
  }
}

TEST(Env, a_bad_switch_warns_once_and_is_nothing) {
  Set("XT_BAD_SWITCH", "maybe");
  CaptureStderr();
  EXPECT_EQ(EnvBool("XT_BAD_SWITCH"), std::nullopt);
  EXPECT_EQ(EnvBool("XT_BAD_SWITCH"), std::nullopt);
  const std::string warning = GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("XT_BAD_SWITCH=maybe"));
  EXPECT_EQ(warning.find("XT_BAD_SWITCH"), warning.rfind("XT_BAD_SWITCH"));
}

TEST(Env, text_is_taken_as_it_is) {
  Set("XT_TEXT", " a b ");
  EXPECT_STREQ(EnvText("XT_TEXT"), " a b ");
}

}  // namespace
}  // namespace xsched
