// Text that is almost JSON.
#pragma once

#include <random>
#include <string_view>
#include <vector>

namespace xsched::shim {

// `text` with `changes` of its characters replaced. It is in its own block of the heap, so that a sanitizer
// detects reading one byte too many.
inline std::vector<char> Scrambled(std::string_view text, unsigned changes, std::mt19937& random) {
  static constexpr char kLetters[] = "{}[]\",:\\u0123456789abcdefntr.eE+- \n\0\xff";
  std::vector<char> scrambled(text.begin(), text.end());
  for (; changes != 0; --changes)
    scrambled[random() % scrambled.size()] = kLetters[random() % sizeof kLetters];
  return scrambled;
}

}  // namespace xsched::shim
