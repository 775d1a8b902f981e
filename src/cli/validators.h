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

// Of an option for a number of seconds: also "30s", which becomes 30.
inline CLI::Validator Seconds() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
        const bool valid = error == std::errc() && (unit.empty() || unit == "s");
        if (!valid || !(value >= 0.001 && value <= 1e6))
          return text + " is no number of seconds from 0.001 to 1000000";
        text.resize(text.size() - unit.size());
        return std::string();
      },
      "");
}

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
