#include "kubernetes/pod_resources.h"

#include <fmt/format.h>

#include <chrono>

#include "kubernetes/failed.h"
#include "kubernetes/grpc_channel.h"
#include "pod_resources.grpc.pb.h"

namespace xsched::kubernetes {
namespace {

constexpr std::chrono::seconds kTimeToAnswer(5);
constexpr int kLongestList = 16 << 20;

}  // namespace

// By a connection of its own each time: a kubelet that has started again has another socket.
Result<v1::ListPodResourcesResponse> ListPodResources(const std::string& socket) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeToAnswer);
  v1::ListPodResourcesResponse answer;
  const auto kubelet = v1::PodResourcesLister::NewStub(ChannelTo(socket, kLongestList));
  const grpc::Status status = kubelet->List(&context, {}, &answer);
  if (!status.ok()) {
    return Failed(fmt::format("the kubelet does not list pods at {}: {} (code {})", socket,
                              status.error_message(), static_cast<int>(status.error_code())));
  }
  return answer;
}

}  // namespace xsched::kubernetes
