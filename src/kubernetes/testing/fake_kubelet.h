// The kubelet's side of the interface for device plugins, as far as the plugin can see it.
#pragma once

#include <grpcpp/server.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device_plugin.grpc.pb.h"
#include "kubernetes/testing/patience.h"

namespace xsched::kubernetes::testing {

// It starts as the real one: it removes all sockets in its folder, and then makes its own.
class FakeKubelet final : public v1beta1::Registration::Service {
 public:
  // Refuses the first `refusals` requests.
  explicit FakeKubelet(std::string folder, int refusals = 0);
  ~FakeKubelet() override;

  // Of the `count` th request that was accepted; the empty one: none has come in time.
  v1beta1::RegisterRequest WaitForRegistration(size_t count = 1);
  // Requests, the refused ones too.
  size_t requests() const;
  // To the plugin that has registered.
  std::unique_ptr<v1beta1::DevicePlugin::Stub> Plugin();

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* answer) override;

 private:
  const std::string folder_;
  int refusals_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t requests_ = 0;
  std::vector<v1beta1::RegisterRequest> registrations_;
  std::unique_ptr<grpc::Server> server_;
};

// Follows a plugin's list, as the kubelet does.
class Following {
 public:
  explicit Following(v1beta1::DevicePlugin::Stub& plugin);
  ~Following();
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;

  // The last list for which `is_it` is true; the empty one: none has come in time.
  template <typename IsIt>
  v1beta1::ListAndWatchResponse WaitFor(IsIt&& is_it) {
    std::unique_lock lock(mutex_);
    const bool has_come = changed_.wait_for(lock, kPatience, [&] { return count_ != 0 && is_it(last_); });
    return has_come ? last_ : v1beta1::ListAndWatchResponse();
  }
  v1beta1::ListAndWatchResponse First() {
    return WaitFor([](const auto&) { return true; });
  }
  // The plugin has ended it.
  bool WaitForEnd();

 private:
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  v1beta1::ListAndWatchResponse last_;
  int count_ = 0;
  bool has_ended_ = false;
  std::thread reader_;
};

}  // namespace xsched::kubernetes::testing
