// The rest of a fuzzer's input, taken piece by piece. After its end it yields zeroes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace xsched::fuzz {

class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  template <typename T>
  T Next() {
    T value{};
    Fill(&value, sizeof value);
    return value;
  }
  // A number below `limit`, from one byte.
  uint32_t Below(uint32_t limit) { return Next<uint8_t>() % limit; }
  void Fill(void* target, size_t size) {
    const size_t given = std::min(size, bytes_.size());
    if (given != 0) memcpy(target, bytes_.data(), given);
    bytes_ = bytes_.subspan(given);
  }
  // All that is left, as text.
  std::string_view Rest() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    bytes_ = {};
    return rest;
  }
  // Up to the next `end`, which is passed over.
  std::string_view Until(char end) {
    const auto found = std::find(bytes_.begin(), bytes_.end(), static_cast<uint8_t>(end));
    const std::string_view part(reinterpret_cast<const char*>(bytes_.data()),
                                static_cast<size_t>(found - bytes_.begin()));
    bytes_ = bytes_.subspan(found == bytes_.end() ? part.size() : part.size() + 1);
    return part;
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace xsched::fuzz
