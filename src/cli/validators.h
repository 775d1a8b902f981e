// What the command line checks before a command begins, with messages for people.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>
#include <string_view>

#include "base/byte_size.h"
#include "sched/core/policy_setting.h"
#include "server/policy_names.h"
#include "xsched/types.h"

namespace xsched::cli {

// "": `text` is a policy, or a chain of them. Otherwise why it is none.
inline std::string PolicyProblem(const std::string& text) {
  try {
    server::SettingOrThrow(text);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

inline CLI::Validator PolicyValidator() {
  return CLI::Validator([](std::string& text) { return PolicyProblem(text); },
                        fmt::format("{}", fmt::join(server::PolicyNames(), "|")));
}

inline std::string ByteSizeProblem(const std::string& text) {
  return ReadByteSize(text.c_str()) ? "" : text + " is no size such as 20GiB or 512MiB";
}

inline CLI::Validator ByteSize() {
  return CLI::Validator([](std::string& text) { return ByteSizeProblem(text); }, "SIZE");
}

// A number with a fraction. CLI::Range takes "nan", which is neither below nor above. With a unit also "30s":
// as a transformation, it takes the unit away.
inline CLI::Validator Between(double low, double high, std::string_view unit = "") {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
        const bool is_number = error == std::errc() && (rest.empty() || rest == unit);
        if (!is_number || !(value >= low && value <= high))
          return fmt::format("{} is not a number from {} to {}", text, low, high);
        text.resize(text.size() - rest.size());
        return std::string();
      },
      fmt::format("from {} to {}", low, high));
}

// How long: "30" or "30s".
inline CLI::Validator TimeInSeconds() { return Between(0.001, 1e6, "s"); }

// Microseconds of a deadline or a laxity. `least`: 0, where one can be taken away.
inline CLI::Validator TimeHint(int64_t least = 1) { return CLI::Range(least, int64_t{DEADLINE_MAX}); }

inline CLI::Validator AboveZero() {
  return CLI::Validator(
      [](std::string& text) {
        int64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool valid = error == std::errc() && end == text.data() + text.size() && value > 0;
        return valid ? "" : text + " is not a whole number above 0";
      },
      "above 0");
}

}  // namespace xsched::cli
