// The kubelet's side of the interface for what pods have. It checks each request: the published fields only.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pod_resources.grpc.pb.h"

namespace xsched::kubernetes::testing {

class FakePodResources final : public v1::PodResourcesLister::Service {
 public:
  // As a kubelet that starts: another one's socket is replaced.
  explicit FakePodResources(const std::string& socket);
  ~FakePodResources() override;

  void Set(v1::ListPodResourcesResponse list);
  // A pod with one container, which has nothing.
  void AddPod(const std::string& name_space, const std::string& name);
  // What it answers to everything, in place of the list.
  void Refuse(const grpc::Status& status);
  int lists() const;
  // Requests that a real one would not have understood.
  std::vector<std::string> faults() const;

  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* request,
                    v1::ListPodResourcesResponse* answer) override;

 private:
  mutable std::mutex mutex_;
  v1::ListPodResourcesResponse list_;
  grpc::Status refusal_;
  int lists_ = 0;
  std::vector<std::string> faults_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace xsched::kubernetes::testing
