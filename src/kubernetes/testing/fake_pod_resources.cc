#include "kubernetes/testing/fake_pod_resources.h"

#include <grpcpp/server_builder.h>

#include <filesystem>

namespace xsched::kubernetes::testing {

FakePodResources::FakePodResources(const std::string& socket) {
  std::filesystem::create_directories(std::filesystem::path(socket).parent_path());
  std::filesystem::remove(socket);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakePodResources::~FakePodResources() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void FakePodResources::Set(v1::ListPodResourcesResponse list) {
  const std::scoped_lock lock(mutex_);
  list_ = std::move(list);
}

void FakePodResources::AddPod(const std::string& name_space, const std::string& name) {
  const std::scoped_lock lock(mutex_);
  v1::PodResources& pod = *list_.add_pod_resources();
  pod.set_namespace_(name_space);
  pod.set_name(name);
  pod.add_containers()->set_name("c");
}

void FakePodResources::Refuse(const grpc::Status& status) {
  const std::scoped_lock lock(mutex_);
  refusal_ = status;
}

int FakePodResources::lists() const {
  const std::scoped_lock lock(mutex_);
  return lists_;
}

std::vector<std::string> FakePodResources::faults() const {
  const std::scoped_lock lock(mutex_);
  return faults_;
}

grpc::Status FakePodResources::List(grpc::ServerContext*, const v1::ListPodResourcesRequest* request,
                                    v1::ListPodResourcesResponse* answer) {
  const std::scoped_lock lock(mutex_);
  ++lists_;
  if (request->ByteSizeLong() != 0) faults_.push_back("a request has fields: " + request->DebugString());
  *answer = list_;
  return refusal_;
}

}  // namespace xsched::kubernetes::testing
