// Texts of others, in messages: users name claims, parameters and annotations as they like.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace xsched::kubernetes {

// How much of a text messages quote.
inline constexpr size_t kLongestPrinted = 40;

// The beginning of a text in UTF-8, of at most `most` bytes. A character that does not fit is left out.
inline std::string Beginning(std::string_view text, size_t most = kLongestPrinted) {
  if (text.size() <= most) return std::string(text);
  auto continues_a_character = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  size_t end = most;
  while (end > 0 && continues_a_character(end)) --end;
  return std::string(text.substr(0, end));
}

// The text as one line of UTF-8, whatever it is: a log has a line for each message, and the kubelet refuses
// answers with anything but UTF-8. '?' in place of control characters, U+FFFD of what is no character.
inline std::string OneLine(const std::string& text) {
  using nlohmann::json;
  const std::string valid = json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
  std::string line;
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    const bool is_in_two = byte == 0xc2 && static_cast<unsigned char>(valid[i + 1]) < 0xa0;
    const bool is_control = byte < ' ' || byte == 0x7f || is_in_two;
    line += is_control ? '?' : valid[i];
    if (is_in_two) ++i;
  }
  return line;
}

}  // namespace xsched::kubernetes
