// JSON as the commands print it. Text that is not UTF-8 must not make the whole output fail.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace xsched::cli {

template <typename Json = nlohmann::json>
std::string JsonText(const Json& value, int indent = 2) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace xsched::cli
