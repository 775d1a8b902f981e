// The ResourceSlices of this node: what is to change at the API server, so that they say what there is. Pure.
//
// All of them are one pool, whose name is the node's. A reader takes those of the highest generation, and
// waits until all of them are there. So a change of any of them is a new generation of all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace xsched::kubernetes {

inline constexpr const char* kResourceSlices = "/apis/resource.k8s.io/v1/resourceslices";

// The path of the list of those that a driver of this node has published.
std::string PathOfSlices(const std::string& node);

// What owns them: they go when the node is removed from the cluster.
struct NodeReference {
  std::string name;
  std::string uid;
};

// What is wanted, and what the server has kept of it before. A server without a feature keeps fewer members
// than are sent: what it has kept counts as what is wanted.
struct WantedSlices {
  std::vector<nlohmann::json> devices;  // of each slice
  std::vector<nlohmann::json> kept;     // likewise; fewer: not known
};

struct ApiRequest {
  std::string method;
  std::string path;
  nlohmann::json body;  // null: none
};

// `list`: the server's answer to PathOfSlices. Empty: they are as they should be.
Result<std::vector<ApiRequest>> ChangesOf(std::string_view list, const WantedSlices& wanted,
                                          const NodeReference& node);

}  // namespace xsched::kubernetes
