// Keeps the ResourceSlices of this node at the API server as they should be. A failure is said once, and the
// next call tries again.
//
// The kubelet removes them when it starts, and when the driver has been away for half a minute: so nobody is
// promised a GPU for which no driver answers. When the driver is back, it publishes them again.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/api_server.h"
#include "kubernetes/resource_slices.h"

namespace xsched::kubernetes {

class SlicePublisher {
 public:
  SlicePublisher(const ApiServer& api, std::string node) : api_(api), node_{std::move(node), ""} {}

  // The devices of each slice.
  void Want(std::vector<nlohmann::json> devices);
  // True: they are there now.
  bool Publish();

 private:
  Result<> TryToPublish();
  Result<> FindNode();
  Result<> Send(const ApiRequest& request);

  const ApiServer& api_;
  NodeReference node_;
  WantedSlices wanted_;
  std::string said_;  // what failed last
};

}  // namespace xsched::kubernetes
