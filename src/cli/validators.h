// What the command line checks before a command begins, with messages for people.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

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
