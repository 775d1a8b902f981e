// What a ResourceSlice may have, as Kubernetes has published it (resource.k8s.io/v1).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace xsched::kubernetes::testing {

// Why the API server would refuse it; "": it would not.
std::string ProblemOfSlice(const nlohmann::json& slice);

}  // namespace xsched::kubernetes::testing
