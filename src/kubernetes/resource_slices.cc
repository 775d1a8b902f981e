#include "kubernetes/resource_slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/dra_devices.h"
#include "kubernetes/json_members.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;

int64_t GenerationOf(const json& slice) {
  const json& generation =
      MemberOrNothing(MemberOrNothing(MemberOrNothing(slice, "spec"), "pool"), "generation");
  return generation.is_number_integer() ? generation.get<int64_t>() : 0;
}

std::string NameOf(const json& slice) { return TextIn(MemberOrNothing(slice, "metadata"), "name"); }

std::string OwnerOf(const json& slice) {
  const json& owners = MemberOrNothing(MemberOrNothing(slice, "metadata"), "ownerReferences");
  return owners.is_array() && owners.size() == 1 ? TextIn(owners[0], "uid") : "";
}

json PoolOf(const NodeReference& node, int64_t generation, size_t count) {
  return {{"name", node.name}, {"generation", generation}, {"resourceSliceCount", count}};
}

bool IsAsWanted(const std::vector<json>& slices, const WantedSlices& wanted, const NodeReference& node) {
  if (slices.size() != wanted.devices.size()) return false;
  for (size_t i = 0; i < slices.size(); ++i) {
    const bool is_there = std::ranges::any_of(slices, [&](const json& slice) {
      const json& spec = MemberOrNothing(slice, "spec");
      const json& devices = MemberOrNothing(spec, "devices");
      const bool has_them =
          devices == wanted.devices[i] || (i < wanted.kept.size() && devices == wanted.kept[i]);
      return has_them && OwnerOf(slice) == node.uid &&
             MemberOrNothing(spec, "pool") == PoolOf(node, GenerationOf(slices[0]), slices.size());
    });
    if (!is_there) return false;
  }
  return true;
}

json SliceOf(const json& devices, const json& pool, const NodeReference& node) {
  const json owner = {
      {"apiVersion", "v1"}, {"kind", "Node"}, {"name", node.name}, {"uid", node.uid}, {"controller", true}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", {{"ownerReferences", json::array({owner})}}},
          {"spec", {{"driver", kDriver}, {"nodeName", node.name}, {"pool", pool}, {"devices", devices}}}};
}

ApiRequest Creation(json slice, const NodeReference& node) {
  slice["metadata"]["generateName"] = fmt::format("{}-{}-", node.name, kDriver);
  return {"POST", kResourceSlices, std::move(slice)};
}

// The version makes the server refuse it if somebody else has changed it since.
ApiRequest Replacement(json slice, const json& old) {
  for (const char* member : {"name", "uid", "resourceVersion"})
    slice["metadata"][member] = TextIn(MemberOrNothing(old, "metadata"), member);
  return {"PUT", fmt::format("{}/{}", kResourceSlices, NameOf(old)), std::move(slice)};
}

}  // namespace

std::string PathOfSlices(const std::string& node) {
  return fmt::format("{}?fieldSelector=spec.driver%3D{},spec.nodeName%3D{}", kResourceSlices, kDriver, node);
}

Result<std::vector<ApiRequest>> ChangesOf(std::string_view list, const WantedSlices& wanted,
                                          const NodeReference& node) {
  const json read = json::parse(list, nullptr, false);
  const json& items = MemberOrNothing(read, "items");
  // The API server writes an empty list as null.
  if (read.is_discarded() || Member(read, "items") == nullptr || !(items.is_array() || items.is_null()))
    return Error::Make("the API server's answer is no list of ResourceSlices");
  std::vector<json> slices(items.begin(), items.end());
  std::erase_if(slices, [](const json& slice) { return NameOf(slice).empty(); });
  std::vector<ApiRequest> changes;
  if (IsAsWanted(slices, wanted, node)) return changes;
  int64_t generation = 1;
  for (const json& slice : slices) generation = std::max(generation, GenerationOf(slice) + 1);
  const json pool = PoolOf(node, generation, wanted.devices.size());
  for (size_t i = 0; i < wanted.devices.size(); ++i) {
    json slice = SliceOf(wanted.devices[i], pool, node);
    changes.push_back(i < slices.size() ? Replacement(std::move(slice), slices[i])
                                        : Creation(std::move(slice), node));
  }
  for (size_t i = wanted.devices.size(); i < slices.size(); ++i)
    changes.push_back({"DELETE", fmt::format("{}/{}", kResourceSlices, NameOf(slices[i])), nullptr});
  return changes;
}

}  // namespace xsched::kubernetes
