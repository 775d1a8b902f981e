// Answers the kubelet: which shares of GPUs there are, which of them to choose, and what a container needs
// for them.
//
// gRPC calls it on threads of its own, several at a time.
#pragma once

#include "device_plugin.grpc.pb.h"
#include "kubernetes/node_state.h"

namespace xsched::kubernetes {

// The kind of our CDI devices is this, too.
inline constexpr const char* kShareResource = "xsched.org/share";

class DevicePlugin final : public v1beta1::DevicePlugin::Service {
 public:
  // `with_cdi`: answers name CDI devices; otherwise they have what an engine would do for these.
  DevicePlugin(NodeState& node, bool with_cdi) : node_(node), with_cdi_(with_cdi) {}

  static v1beta1::DevicePluginOptions Options();
  NodeState& node() { return node_; }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* answer) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* context,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* answer) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* answer) override;

 private:
  NodeState& node_;
  const bool with_cdi_;
};

}  // namespace xsched::kubernetes
