// Characters for pictures in text: from nothing to a full block.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

namespace xsched::cli {

inline constexpr int kShades = 9;

// `ascii`: for terminals without Unicode. `height`: 0 … 1. What is above 0 is visible.
inline const char* ShadeOf(double height, bool ascii) {
  static constexpr const char* kBlocks[kShades] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kAscii[kShades] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
  const auto shade = static_cast<int>(std::ceil(std::clamp(height, 0.0, 1.0) * (kShades - 1)));
  return (ascii ? kAscii : kBlocks)[shade];
}

}  // namespace xsched::cli
