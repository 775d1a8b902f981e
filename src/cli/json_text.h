// JSON as the commands print it. Names and values that are not UTF-8 must not keep the rest from being seen.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace xsched::cli {

inline std::string JsonText(const nlohmann::json& value, int indent = 2) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace xsched::cli
