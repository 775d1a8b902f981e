#include "ipc/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace xsched::ipc {
namespace {

TEST(Texts, that_fit_are_taken_whole) {
  char text[8] = {};
  SetText(text, std::string("1234567"));
  EXPECT_STREQ(text, "1234567");
}

TEST(Texts, that_are_too_long_are_cut_off_and_end) {
  char text[8] = {};
  SetText(text, std::string("123456789"));
  EXPECT_STREQ(text, "1234567");
}

TEST(Texts, come_from_arrays_without_an_end) {
  char unended[4];
  std::fill(std::begin(unended), std::end(unended), 'x');
  char longer[8] = {};
  SetText(longer, unended);
  EXPECT_STREQ(longer, "xxxx");
  char shorter[3] = {};
  SetText(shorter, unended);
  EXPECT_STREQ(shorter, "xx");
}

TEST(Texts, of_peers_are_ended) {
  char text[4];
  std::fill(std::begin(text), std::end(text), 'x');
  EndText(text);
  EXPECT_STREQ(text, "xxx");
}

TEST(Texts, of_peers_have_no_control_characters) {
  char text[32] = "\x1b]0;evil\x07\r\n\x7f\xc2\x9b";
  EndText(text);
  EXPECT_STREQ(text, "?]0;evil??????");
  char name[32] = "Müller 東京";
  EndText(name);
  EXPECT_STREQ(name, "Müller 東京");
}

}  // namespace
}  // namespace xsched::ipc
