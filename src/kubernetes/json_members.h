// Members of JSON that others have written: whatever is not there, or of another type, reads as nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace xsched::kubernetes {

// Null: there is no such member.
inline const nlohmann::json* Member(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

inline const nlohmann::json& MemberOrNothing(const nlohmann::json& object, const char* name) {
  static const nlohmann::json nothing;
  const nlohmann::json* member = Member(object, name);
  return member == nullptr ? nothing : *member;
}

inline std::string TextIn(const nlohmann::json& object, const char* name) {
  const nlohmann::json& text = MemberOrNothing(object, name);
  return text.is_string() ? text.get<std::string>() : "";
}

}  // namespace xsched::kubernetes
