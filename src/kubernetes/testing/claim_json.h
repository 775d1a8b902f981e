// ResourceClaims, as the API server has them once they are allocated.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace xsched::kubernetes::testing {

// One allocated device of ours.
inline nlohmann::json ResultJson(const std::string& request, const std::string& device) {
  return {{"request", request}, {"driver", "gpu.xsched.org"}, {"pool", "node-1.example"}, {"device", device}};
}

// `source`: FromClass or FromClaim. `parameters` may replace apiVersion and kind.
inline nlohmann::json ParametersJson(const std::string& source, const nlohmann::json& parameters) {
  nlohmann::json all = {{"apiVersion", "gpu.xsched.org/v1"}, {"kind", "ShareParameters"}};
  all.update(parameters);
  return {{"source", source}, {"opaque", {{"driver", "gpu.xsched.org"}, {"parameters", all}}}};
}

inline nlohmann::json ClaimJson(const std::string& uid, const nlohmann::json& results,
                                const nlohmann::json& configs = nlohmann::json::array()) {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", {{"uid", uid}}},
          {"status", {{"allocation", {{"devices", {{"results", results}, {"config", configs}}}}}}}};
}

}  // namespace xsched::kubernetes::testing
