// Answers the kubelet for claims (DRA): reads each claim at the API server, and says which CDI devices its
// containers get.
//
// gRPC calls it on threads of its own, several at a time.
#pragma once

#include <string>

#include "dra.grpc.pb.h"
#include "kubernetes/api_server.h"
#include "kubernetes/dra_claim.h"
#include "kubernetes/node_state.h"
#include "kubernetes/prepared_claims.h"

namespace xsched::kubernetes {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

// By this name a driver says at its registration that it serves the interface.
inline constexpr const char* kDraService = "v1.DRAPlugin";

class DraPlugin final : public dra::DRAPlugin::Service {
 public:
  DraPlugin(NodeState& node, PreparedClaims& claims, const ApiServer& api, const Division& division)
      : node_(node), claims_(claims), api_(api), division_(division) {}

  grpc::Status NodePrepareResources(grpc::ServerContext* context,
                                    const dra::NodePrepareResourcesRequest* request,
                                    dra::NodePrepareResourcesResponse* answer) override;
  grpc::Status NodeUnprepareResources(grpc::ServerContext* context,
                                      const dra::NodeUnprepareResourcesRequest* request,
                                      dra::NodeUnprepareResourcesResponse* answer) override;

 private:
  Result<PreparedClaim> Prepare(const dra::Claim& asked);

  NodeState& node_;
  PreparedClaims& claims_;
  const ApiServer& api_;
  const Division division_;
};

}  // namespace xsched::kubernetes
