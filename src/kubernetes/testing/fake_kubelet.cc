#include "kubernetes/testing/fake_kubelet.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>

#include <filesystem>

namespace xsched::kubernetes::testing {

FakeKubelet::FakeKubelet(std::string folder, int refusals) : folder_(std::move(folder)), refusals_(refusals) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) std::filesystem::remove_all(entry);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + folder_ + "/kubelet.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeKubelet::~FakeKubelet() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

grpc::Status FakeKubelet::Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                                   v1beta1::Empty*) {
  const std::scoped_lock lock(mutex_);
  ++requests_;
  changed_.notify_all();
  if (refusals_-- > 0)
    return {grpc::StatusCode::UNKNOWN, "the requested device plugin API version is not supported"};
  registrations_.push_back(*request);
  return grpc::Status::OK;
}

v1beta1::RegisterRequest FakeKubelet::WaitForRegistration(size_t count) {
  std::unique_lock lock(mutex_);
  const bool has_come = changed_.wait_for(lock, kPatience, [&] { return registrations_.size() >= count; });
  return has_come ? registrations_[count - 1] : v1beta1::RegisterRequest();
}

size_t FakeKubelet::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

std::unique_ptr<v1beta1::DevicePlugin::Stub> FakeKubelet::Plugin() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1beta1::DevicePlugin::NewStub(
      grpc::CreateCustomChannel("unix:" + folder_ + "/" + WaitForRegistration().endpoint(),
                                grpc::InsecureChannelCredentials(), arguments));
}

Following::Following(v1beta1::DevicePlugin::Stub& plugin)
    : reader_([this, reader = plugin.ListAndWatch(&context_, v1beta1::Empty())] {
        v1beta1::ListAndWatchResponse list;
        while (reader->Read(&list)) {
          const std::scoped_lock lock(mutex_);
          last_ = list;
          ++count_;
          changed_.notify_all();
        }
        const std::scoped_lock lock(mutex_);
        has_ended_ = true;
        changed_.notify_all();
      }) {}

Following::~Following() {
  context_.TryCancel();
  reader_.join();
}

bool Following::WaitForEnd() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return has_ended_; });
}

}  // namespace xsched::kubernetes::testing
