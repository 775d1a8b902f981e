#include "server/clean_text.h"

#include <string.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace xsched::server {
namespace {

bool IsBetween(uint32_t code, uint32_t first, uint32_t last) { return code >= first && code <= last; }

bool IsShown(uint32_t code) {
  const bool control = code < ' ' || IsBetween(code, 0x7f, 0x9f) || IsBetween(code, 0x2028, 0x2029);
  const bool direction = code == 0x061c || IsBetween(code, 0x200b, 0x200f) ||
                         IsBetween(code, 0x202a, 0x202e) || IsBetween(code, 0x2060, 0x206f) || code == 0xfeff;
  const bool surrogate = IsBetween(code, 0xd800, 0xdfff);
  return !control && !direction && !surrogate && code <= 0x10ffff;
}

// The number of bytes of the character at the beginning. 0: there is none that may be shown.
size_t LengthOfShown(std::string_view text) {
  const auto byte = [text](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return IsShown(first) ? 1 : 0;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  uint32_t code = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // a smaller one has a shorter form
  return code >= kLeast[length] && IsShown(code) ? length : 0;
}

}  // namespace

std::string CleanText(const char* text, size_t size) {
  std::string_view left(text, strnlen(text, size));
  std::string clean;
  while (!left.empty()) {
    const size_t length = LengthOfShown(left);
    clean += length == 0 ? "?" : left.substr(0, length);
    left.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

}  // namespace xsched::server
