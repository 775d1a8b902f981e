#include "server/clean_text.h"

#include <gtest/gtest.h>

namespace xsched::server {
namespace {

std::string Clean(std::string_view text) { return CleanText(text.data(), text.size()); }

TEST(CleanText, names_are_kept_in_every_language_up_to_the_first_nul) {
  EXPECT_EQ(Clean("train.py"), "train.py");
  EXPECT_EQ(Clean("プログラム"), "プログラム");
  EXPECT_EQ(Clean("größe 🚀"), "größe 🚀");
  EXPECT_EQ(Clean(std::string_view("a\0b", 3)), "a");
  EXPECT_EQ(Clean(""), "");
}

TEST(CleanText, what_moves_a_cursor_or_turns_the_direction_of_text_is_replaced) {
  EXPECT_EQ(Clean("a\x1b[2J\n\x7f"), "a?[2J??");
  EXPECT_EQ(Clean("a\xc2\x9b"
                  "b"),
            "a??b")
      << "a control character in two bytes";
  EXPECT_EQ(Clean("a\xe2\x80\xae"
                  "b"),
            "a???b")
      << "right to left";
  EXPECT_EQ(Clean("\xe2\x80\xa8"), "???") << "a line's end";
}

TEST(CleanText, bytes_that_are_no_character_are_replaced) {
  EXPECT_EQ(Clean("\xe3\x83"), "??") << "cut off";
  EXPECT_EQ(Clean("\xc0\xaf"), "??") << "a longer form than need be";
  EXPECT_EQ(Clean("\xe0\x80\xaf"), "???");
  EXPECT_EQ(Clean("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(Clean("\xf4\x90\x80\x80"), "????") << "beyond Unicode";
  EXPECT_EQ(Clean("\xff"
                  "a\x80"),
            "?a?");
}

}  // namespace
}  // namespace xsched::server
