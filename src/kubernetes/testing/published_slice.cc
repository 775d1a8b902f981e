#include "kubernetes/testing/published_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace xsched::kubernetes::testing {
namespace {

using nlohmann::json;
using Type = json::value_t;

// Elements of a list are [], those of a map {}.
const std::map<std::string, Type> kPublished = {
    {"apiVersion", Type::string},
    {"kind", Type::string},
    {"metadata.name", Type::string},
    {"metadata.generateName", Type::string},
    {"metadata.uid", Type::string},
    {"metadata.resourceVersion", Type::string},
    {"metadata.ownerReferences.[].apiVersion", Type::string},
    {"metadata.ownerReferences.[].kind", Type::string},
    {"metadata.ownerReferences.[].name", Type::string},
    {"metadata.ownerReferences.[].uid", Type::string},
    {"metadata.ownerReferences.[].controller", Type::boolean},
    {"spec.driver", Type::string},
    {"spec.nodeName", Type::string},
    {"spec.pool.name", Type::string},
    {"spec.pool.generation", Type::number_unsigned},
    {"spec.pool.resourceSliceCount", Type::number_unsigned},
    {"spec.devices.[].name", Type::string},
    {"spec.devices.[].attributes.{}.string", Type::string},
    {"spec.devices.[].attributes.{}.int", Type::number_unsigned},
    {"spec.devices.[].capacity.{}.value", Type::string},
    {"spec.devices.[].capacity.{}.requestPolicy.default", Type::string},
    {"spec.devices.[].capacity.{}.requestPolicy.validRange.min", Type::string},
    {"spec.devices.[].capacity.{}.requestPolicy.validRange.step", Type::string},
    {"spec.devices.[].allowMultipleAllocations", Type::boolean},
};
const std::set<std::string> kRequired = {
    "apiVersion",
    "kind",
    "spec.driver",
    "spec.nodeName",
    "spec.pool.name",
    "spec.pool.generation",
    "spec.pool.resourceSliceCount",
};
// Their members have names of one's own.
const std::set<std::string> kMaps = {"spec.devices.[].attributes", "spec.devices.[].capacity"};

bool IsIdentifier(const std::string& name) {
  constexpr size_t kLongest = 32;
  return !name.empty() && name.size() <= kLongest && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool IsLabel(const std::string& name) {
  constexpr size_t kLongest = 63;
  auto is_inner = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= kLongest && name.front() != '-' && name.back() != '-' &&
         std::ranges::all_of(name, is_inner);
}

std::string ProblemOfMembers(const json& value, const std::string& path, std::set<std::string>& seen) {
  if (!value.is_structured()) {
    seen.insert(path);
    const auto published = kPublished.find(path);
    if (published == kPublished.end()) return "there is no " + path;
    return published->second == value.type() ? "" : path + " is of another type";
  }
  for (const auto& [name, member] : value.items()) {
    const bool is_map = kMaps.contains(path);
    if (is_map && !IsIdentifier(name)) return "no identifier: " + name;
    const std::string step = value.is_array() ? "[]" : is_map ? "{}" : name;
    std::string problem = ProblemOfMembers(member, path.empty() ? step : path + "." + step, seen);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string ProblemOfDevice(const json& device) {
  constexpr size_t kLongestText = 64;
  const std::string name = device.at("name");
  if (!IsLabel(name)) return "no DNS label: " + name;
  const json attributes = device.value("attributes", json::object());
  for (const auto& [key, attribute] : attributes.items()) {
    if (attribute.size() != 1) return key + " has not one value";
    if (attribute.contains("string") && attribute["string"].get<std::string>().size() > kLongestText)
      return key + " is too long";
  }
  const bool is_shared = device.value("allowMultipleAllocations", false);
  const json capacities = device.value("capacity", json::object());
  for (const auto& [key, capacity] : capacities.items()) {
    if (!capacity.contains("value")) return key + " has no value";
    if (capacity.contains("requestPolicy") && !is_shared)
      return key + " has a policy, and the device one allocation";
  }
  return "";
}

}  // namespace

std::string ProblemOfSlice(const json& slice) {
  std::set<std::string> seen;
  std::string problem = ProblemOfMembers(slice, "", seen);
  if (!problem.empty()) return problem;
  for (const std::string& path : kRequired) {
    if (!seen.contains(path)) return path + " is missing";
  }
  constexpr size_t kMostDevices = 128;
  if (slice["apiVersion"] != "resource.k8s.io/v1" || slice["kind"] != "ResourceSlice")
    return "it is of another kind";
  const json devices = slice["spec"].value("devices", json::array());
  if (devices.size() > kMostDevices) return "it has too many devices";
  std::set<std::string> names;
  for (const json& device : devices) {
    problem = ProblemOfDevice(device);
    if (problem.empty() && !names.insert(device["name"]).second) problem = "two devices have the same name";
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace xsched::kubernetes::testing
