// Text that is almost JSON.
#pragma once

#include <random>
#include <string_view>
#include <vector>

namespace xsched::shim {

// `text` with so many of its characters replaced. In a block of the heap of its own: a sanitizer sees the
// first byte too many that is read of it.
inline std::vector<char> Scrambled(std::string_view text, unsigned changes, std::mt19937& random) {
  static constexpr char kLetters[] = "{}[]\",:\\u0123456789abcdefntr.eE+- \n\0\xff";
  std::vector<char> scrambled(text.begin(), text.end());
  for (; changes != 0; --changes)
    scrambled[random() % scrambled.size()] = kLetters[random() % sizeof kLetters];
  return scrambled;
}

}  // namespace xsched::shim
