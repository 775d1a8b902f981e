// Text in columns of a terminal. A character counts as one column.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace xsched::cli {

// Of UTF-8: the bytes that begin a character.
inline int WidthOf(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char byte) { return (byte & 0xc0) != 0x80; }));
}

// At most its first `width` characters.
inline std::string Cut(std::string_view text, int width) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    if ((text[end] & 0xc0) != 0x80 && width-- <= 0) break;
  }
  return std::string(text.substr(0, end));
}

// Exactly `width` characters.
inline std::string Fit(std::string_view text, int width, bool right = false) {
  std::string fitted = Cut(text, width);
  const auto blanks = static_cast<size_t>(std::max(0, width - WidthOf(fitted)));
  fitted.insert(right ? 0 : fitted.size(), blanks, ' ');
  return fitted;
}

}  // namespace xsched::cli
