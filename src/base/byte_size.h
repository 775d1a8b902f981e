// Sizes of memory as people write them: 20GiB, 512MiB, 1500000.
#pragma once

#include <string.h>
#include <strings.h>

#include <cstdint>
#include <optional>

namespace xsched {

// A whole number above 0, and a unit: KiB, MiB, GiB, TiB (K, M, G and T mean the same), KB, MB, GB, TB, B.
inline std::optional<uint64_t> ReadByteSize(const char* text) {
  struct Unit {
    const char* name;
    uint64_t bytes;
  };
  constexpr uint64_t kKi = 1024;
  constexpr uint64_t kK = 1000;
  constexpr Unit kUnits[] = {{"", 1},
                             {"B", 1},
                             {"K", kKi},
                             {"KiB", kKi},
                             {"KB", kK},
                             {"M", kKi * kKi},
                             {"MiB", kKi * kKi},
                             {"MB", kK * kK},
                             {"G", kKi * kKi * kKi},
                             {"GiB", kKi * kKi * kKi},
                             {"GB", kK * kK * kK},
                             {"T", kKi * kKi * kKi * kKi},
                             {"TiB", kKi * kKi * kKi * kKi},
                             {"TB", kK * kK * kK * kK}};
  constexpr uint64_t kMost = uint64_t{1} << 47;  // more than any device has
  if (text == nullptr || *text < '0' || *text > '9') return std::nullopt;
  uint64_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (number > kMost) return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(*text - '0');
  }
  for (const Unit& unit : kUnits) {
    if (strcasecmp(text, unit.name) != 0) continue;
    if (number == 0 || number > kMost / unit.bytes) return std::nullopt;
    return number * unit.bytes;
  }
  return std::nullopt;
}

}  // namespace xsched
