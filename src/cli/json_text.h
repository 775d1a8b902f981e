// JSON as the commands print it. Text that is not UTF-8 must not make the whole output fail.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace xsched::cli {

inline std::string JsonText(const nlohmann::json& value, int indent = 2) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace xsched::cli
