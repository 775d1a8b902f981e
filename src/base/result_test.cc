#include "base/result.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace xsched {
namespace {

TEST(Error, its_text_is_what_was_formatted) {
  Error error = Error::Make("queue %d of %s", 7, "gpu");
  EXPECT_STREQ(error.text(), "queue 7 of gpu");
  EXPECT_EQ(error.errnum(), 0);
}

TEST(Error, the_system_s_reason_follows_the_text) {
  Error error = Error::FromErrno(ENOENT, "cannot open %s", "/run/xsched");
  EXPECT_STREQ(error.text(), "cannot open /run/xsched: No such file or directory");
  EXPECT_EQ(error.errnum(), ENOENT);
}

TEST(Error, a_long_text_is_cut_and_stays_a_string) {
  const std::string long_path(5000, 'x');
  Error error = Error::FromErrno(ENOENT, "%s", long_path.c_str());
  const std::string text = error.text();
  EXPECT_GT(text.size(), 200u);
  EXPECT_EQ(text, long_path.substr(0, text.size()));
  EXPECT_EQ(error.errnum(), ENOENT);
}

TEST(Error, a_long_text_is_cut_between_characters) {
  const std::string characters[] = {"é", "€", "𝄞"};
  for (const std::string& character : characters) {
    for (size_t begin = 0; begin < character.size(); ++begin) {
      std::string text(begin, 'x');
      while (text.size() < 500) text += character;
      const Error errors[] = {Error::Make("%s", text.c_str()), Error::FromErrno(ENOENT, "%s", text.c_str())};
      for (const Error& error : errors) {
        const std::string cut = error.text();
        EXPECT_GT(cut.size(), 235u);
        EXPECT_EQ((cut.size() - begin) % character.size(), 0u) << cut;
        EXPECT_EQ(cut, text.substr(0, cut.size()));
      }
    }
  }
}

TEST(Error, a_text_that_just_fits_is_whole) {
  std::string text(240, 'x');
  text += "€";
  EXPECT_EQ(Error::Make("%s", text.c_str()).text(), text);
}

TEST(Result, a_value_is_a_success) {
  Result<int> result = 42;
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 42);
}

TEST(Result, an_error_is_a_failure) {
  Result<int> result = Error::Make("no");
  ASSERT_FALSE(result);
  EXPECT_STREQ(result.error().text(), "no");
}

TEST(Result, without_a_value_it_is_a_success_unless_an_error_says_otherwise) {
  Result<> fine;
  EXPECT_TRUE(fine);
  Result<> failed = Error::Make("no");
  EXPECT_FALSE(failed);
}

TEST(Result, a_value_that_can_only_be_moved_can_be_taken_out) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result);
  std::unique_ptr<int> taken = std::move(*result);
  EXPECT_EQ(*taken, 5);
}

}  // namespace
}  // namespace xsched
