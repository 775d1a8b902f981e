// fake_kubelet --pods SOCKET NAMESPACE NAME: lists this pod at the socket for pod resources, until its
// standard input ends.
//
// fake_kubelet FOLDER PERCENT: the kubelet's side of one container that asks for that share of a GPU, for an
// agent that is started by others. Prints what the device plugin that registers gives to the container, as
// JSON.
#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "kubernetes/testing/fake_kubelet.h"
#include "kubernetes/testing/fake_pod_resources.h"

namespace xsched::kubernetes::testing {
namespace {

int Fail(const std::string& what) {
  std::fprintf(stderr, "fake_kubelet: %s\n", what.c_str());
  return 1;
}

int AllocateOne(const std::string& folder, int percent) {
  FakeKubelet kubelet(folder);
  const v1beta1::RegisterRequest registration = kubelet.WaitForRegistration();
  if (registration.resource_name() != "xsched.org/share" || registration.version() != "v1beta1")
    return Fail("no device plugin registers: " + registration.ShortDebugString());
  const std::unique_ptr<v1beta1::DevicePlugin::Stub> plugin = kubelet.Plugin();
  const v1beta1::ListAndWatchResponse list = Following(*plugin).First();
  if (list.devices_size() < percent) return Fail("it has too few shares: " + list.ShortDebugString());

  v1beta1::AllocateRequest request;
  auto& ids = *request.add_container_requests()->mutable_devices_ids();
  for (int i = 0; i < percent; ++i) *ids.Add() = list.devices(i).id();
  grpc::ClientContext context;
  v1beta1::AllocateResponse answer;
  const grpc::Status status = plugin->Allocate(&context, request, &answer);
  if (!status.ok()) return Fail("it refuses: " + status.error_message());
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(answer.container_responses(0), &text).ok())
    return Fail("its answer is no JSON");
  std::puts(text.c_str());
  return 0;
}

int ListOnePod(const std::string& socket, const std::string& name_space, const std::string& name) {
  FakePodResources kubelet(socket);
  kubelet.AddPod(name_space, name);
  while (std::getchar() != EOF) {
  }
  for (const std::string& fault : kubelet.faults()) return Fail(fault);
  return kubelet.lists() > 0 ? 0 : Fail("nobody has asked");
}

}  // namespace
}  // namespace xsched::kubernetes::testing

int main(int argc, char** argv) {
  using namespace xsched::kubernetes::testing;
  if (argc == 5 && std::string(argv[1]) == "--pods") return ListOnePod(argv[2], argv[3], argv[4]);
  if (argc != 3) return Fail("FOLDER PERCENT, or --pods SOCKET NAMESPACE NAME");
  return AllocateOne(argv[1], std::atoi(argv[2]));
}
