#include "shim/common/json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "shim/common/testing/scrambled.h"

namespace xsched::shim {
namespace {

bool IsValid(std::string_view text) {
  JsonReader json(text);
  json.Skip();
  return json.AtEnd();
}

std::string TextOf(std::string_view text) {
  JsonReader json(text);
  JsonText out;
  return json.ReadText(&out) && json.AtEnd() ? std::string(out.view()) : "(fault)";
}

TEST(Json, values_of_each_kind_are_read) {
  for (const char* text : {"{}", "[]", "\"\"", "0", "-1.5e+3", "true", "false", "null", " [ 1 , 2 ] ",
                           R"({"a": {"b": [1, "x", null]}, "c": []})"}) {
    EXPECT_TRUE(IsValid(text)) << text;
  }
}

TEST(Json, what_is_no_json_is_a_fault) {
  for (const char* text :
       {"",      "{",   "}",   "[1,]",    "[,1]",      "[1 2]",  "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
        "{a:1}", "'a'", "\"",  "\"\\x\"", "\"\\u12\"", "\"\n\"", "01",      "1.",       "-",
        "+1",    "tru", "nul", "1e",      "[1]]",      "1 2",    "{} x"}) {
    EXPECT_FALSE(IsValid(text)) << text;
  }
}

TEST(Json, escapes_stand_for_their_characters) {
  EXPECT_EQ(TextOf(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(TextOf(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(TextOf(R"("\ud83d")"), "(fault)") << "half of a pair";
  EXPECT_EQ(TextOf(R"("\ude00")"), "(fault)") << "the other half";
}

TEST(Json, a_zero_in_a_text_is_a_fault) {
  EXPECT_EQ(TextOf(R"("a\u0000b")"), "(fault)");
  EXPECT_FALSE(IsValid(std::string_view("\"a\0b\"", 5)));
}

TEST(Json, a_text_that_does_not_fit_is_a_fault) {
  EXPECT_EQ(TextOf('"' + std::string(256, 'x') + '"').size(), 256u);
  EXPECT_EQ(TextOf('"' + std::string(257, 'x') + '"'), "(fault)");
}

TEST(Json, depth_is_bounded) {
  EXPECT_TRUE(IsValid(std::string(64, '[') + std::string(64, ']')));
  EXPECT_FALSE(IsValid(std::string(65, '[') + std::string(65, ']')));
  EXPECT_FALSE(IsValid(std::string(1000000, '[')));
}

TEST(Json, members_are_walked_in_order) {
  JsonReader json(R"({"one": ["a", "b"], "two": 2, "three": {}})");
  std::vector<std::string> seen;
  JsonText text;
  for (json.EnterObject(); json.NextKey(&text);) {
    seen.emplace_back(text.view());
    if (json.Next() != JsonReader::Kind::kArray) {
      json.Skip();
      continue;
    }
    for (json.EnterArray(); json.NextElement();) {
      json.ReadText(&text);
      seen.emplace_back(text.view());
    }
  }
  EXPECT_TRUE(json.AtEnd());
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "a", "b", "two", "three"}));
}

TEST(Json, the_line_of_a_fault_is_known) {
  JsonReader json("{\n\"a\": 1,\n\"b\" 2\n}");
  json.Skip();
  EXPECT_FALSE(json.ok());
  EXPECT_EQ(json.line(), 3);
}

// Reads any text as a caller would. It must come to an end.
void WalkOver(std::string_view text) {
  JsonReader json(text);
  JsonText name;
  for (json.EnterObject(); json.NextKey(&name);) {
    if (json.Next() == JsonReader::Kind::kArray) {
      for (json.EnterArray(); json.NextElement();) json.ReadText(&name);
    } else {
      json.Skip();
    }
  }
  EXPECT_GE(json.line(), 1);
  EXPECT_LE(name.size, sizeof name.text);
}

TEST(Json, no_text_whatsoever_makes_it_read_beyond_the_end) {
  const std::string whole = R"({"a": ["x", "\u0041\n"], "b": {"c": [1.5e3, true, null]}, "d": "e"})";
  // Each is on the heap, in a block of its exact size, so that a sanitizer detects reading one byte too many.
  for (size_t size = 0; size <= whole.size(); ++size) {
    std::vector<char> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    WalkOver({part.data(), part.size()});
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<char> text = Scrambled(whole, 1 + random() % 4, random);
    text.resize(random() % (text.size() + 1));
    WalkOver({text.data(), text.size()});
  }
}

}  // namespace
}  // namespace xsched::shim
