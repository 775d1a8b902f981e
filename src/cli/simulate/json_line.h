// One JSON object of a file, and what is wrong with it: every error names the file and the line.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cli/exit_codes.h"

namespace xsched::cli {

class JsonLine {
 public:
  JsonLine(const nlohmann::json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) Fail("not a JSON object");
  }

  [[noreturn]] void Fail(const std::string& what) const {
    throw CommandError(kExitFailed, fmt::format("{}: {}", place_, what));
  }

  const std::string& place() const { return place_; }
  // Fails for a key that is none of `known`: a misspelled one would change nothing, without a word.
  template <typename Known>
  void AllowOnly(const Known& known) const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(std::begin(known), std::end(known), std::string_view(key)) == std::end(known))
        Fail(fmt::format("unknown key {}", WithoutControls(key)));
    }
  }

  bool Has(const char* key) const { return object_.contains(key); }
  // The object under `key`.
  JsonLine Part(const char* key) const { return {object_.at(key), fmt::format("{}: {}", place_, key)}; }

  // A whole number in [low, high].
  int64_t Number(const char* key, int64_t low, int64_t high) const {
    const auto found = object_.find(key);
    if (found == object_.end()) Fail(fmt::format("{} is missing", key));
    if (!found->is_number_integer() || *found < low || *found > high)
      Fail(fmt::format("{} must be a whole number from {} to {}", key, low, high));
    return found->get<int64_t>();
  }
  int64_t Number(const char* key, int64_t low, int64_t high, int64_t otherwise) const {
    return Has(key) ? Number(key, low, high) : otherwise;
  }
  // A time of at least 0.
  Duration Time(const char* key) const { return Duration(Number(key, 0, kLongest)); }
  Duration Time(const char* key, Duration otherwise) const { return Has(key) ? Time(key) : otherwise; }
  bool Flag(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return false;
    if (!found->is_boolean()) Fail(fmt::format("{} must be true or false", key));
    return found->get<bool>();
  }
  // It may be shown on a terminal: control characters become question marks.
  std::string Text(const char* key, const std::string& otherwise) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return otherwise;
    if (!found->is_string()) Fail(fmt::format("{} must be text", key));
    return WithoutControls(found->get<std::string>());
  }

 private:
  static std::string WithoutControls(std::string text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
      if (byte < ' ' || byte == 0x7f) text[i] = '?';
      // U+0080 to U+009F, in UTF-8.
      if (byte == 0xc2 && next >= 0x80 && next < 0xa0) text.replace(i, 2, "?");
    }
    return text;
  }

  static constexpr int64_t kLongest = Duration(std::chrono::hours(24 * 366)).count();

  const nlohmann::json& object_;
  std::string place_;
};

}  // namespace xsched::cli
