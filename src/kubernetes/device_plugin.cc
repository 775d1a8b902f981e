#include "kubernetes/device_plugin.h"

#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/shares.h"
#include "kubernetes/text.h"

namespace xsched::kubernetes {
namespace {

grpc::Status Refused(const Error& error) {
  return {grpc::StatusCode::FAILED_PRECONDITION, OneLine(error.text())};
}

template <typename Ids>
std::vector<std::string> Texts(const Ids& ids) {
  return {ids.begin(), ids.end()};
}

// Without their NUMA nodes: the kubelet would choose a node by the number of shares that it has left, whether
// or not one GPU of it has enough, and would then offer only those of this node.
v1beta1::ListAndWatchResponse ListOf(const std::vector<Gpu>& gpus) {
  v1beta1::ListAndWatchResponse list;
  for (const Gpu& gpu : gpus) {
    for (int number = 0; number < kSharesOfGpu; ++number) {
      v1beta1::Device& device = *list.add_devices();
      device.set_id(IdOf({gpu.device.id, number}));
      device.set_health(gpu.works ? "Healthy" : "Unhealthy");
    }
  }
  return list;
}

void AddFiles(const cli::KernelDevice& device, v1beta1::ContainerAllocateResponse& answer) {
  for (const std::string& file : device.files) {
    const auto is_it = [&](const v1beta1::DeviceSpec& other) { return other.host_path() == file; };
    if (std::ranges::any_of(answer.devices(), is_it)) continue;
    v1beta1::DeviceSpec& added = *answer.add_devices();
    added.set_host_path(file);
    added.set_container_path(file);
    added.set_permissions("rw");
  }
}

// "NAME=VALUE". Several values of a name are a list.
void AddVariable(const std::string& text, v1beta1::ContainerAllocateResponse& answer) {
  const size_t end = text.find('=');
  std::string& value = (*answer.mutable_envs())[text.substr(0, end)];
  value = (value.empty() ? "" : value + ",") + text.substr(end + 1);
}

void AddGpu(const cli::KernelDevice& device, bool with_cdi, v1beta1::ContainerAllocateResponse& answer) {
  if (with_cdi && !device.cdi.empty()) {
    answer.add_cdi_devices()->set_name(device.cdi);
    return;
  }
  if (!with_cdi && !device.variable.empty()) AddVariable(device.variable, answer);
  AddFiles(device, answer);
}

// What an engine would do for our CDI device, for engines that know no CDI.
void AddEdits(const nlohmann::ordered_json& edits, v1beta1::ContainerAllocateResponse& answer) {
  for (const std::string text : edits.value("env", nlohmann::ordered_json::array()))
    AddVariable(text, answer);
  for (const auto& mount : edits.value("mounts", nlohmann::ordered_json::array())) {
    v1beta1::Mount& added = *answer.add_mounts();
    added.set_host_path(mount.at("hostPath"));
    added.set_container_path(mount.at("containerPath"));
    added.set_read_only(true);
  }
}

void AddShare(const cli::CdiSpecification& specification, int percent, bool with_cdi,
              v1beta1::ContainerAllocateResponse& answer) {
  const std::string name = std::to_string(percent);
  if (with_cdi) {
    answer.add_cdi_devices()->set_name(fmt::format("{}={}", specification.kind, name));
    return;
  }
  cli::CdiSpecification of_one = specification;
  std::erase_if(of_one.devices, [&](const cli::CdiDevice& device) { return device.name != name; });
  const nlohmann::ordered_json json = CdiJson(of_one);
  AddEdits(json.at("containerEdits"), answer);
  AddEdits(json.at("devices").at(0).at("containerEdits"), answer);
}

}  // namespace

v1beta1::DevicePluginOptions DevicePlugin::Options() {
  v1beta1::DevicePluginOptions options;
  options.set_get_preferred_allocation_available(true);
  return options;
}

grpc::Status DevicePlugin::GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                                  v1beta1::DevicePluginOptions* answer) {
  *answer = Options();
  return grpc::Status::OK;
}

grpc::Status DevicePlugin::ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                                        grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  NodeState::Follower follower(node_);
  while (!follower.HasEnded() && !context->IsCancelled()) {
    const std::shared_ptr<const Node> news = follower.Next();
    if (news != nullptr && !writer->Write(ListOf(news->gpus))) break;
  }
  return grpc::Status::OK;
}

grpc::Status DevicePlugin::GetPreferredAllocation(grpc::ServerContext*,
                                                  const v1beta1::PreferredAllocationRequest* request,
                                                  v1beta1::PreferredAllocationResponse* answer) {
  for (const auto& container : request->container_requests()) {
    Result<std::vector<std::string>> chosen =
        PreferredShares(Texts(container.available_deviceids()), Texts(container.must_include_deviceids()),
                        container.allocation_size());
    if (!chosen) return Refused(chosen.error());
    auto& ids = *answer->add_container_responses()->mutable_deviceids();
    ids.Add(chosen->begin(), chosen->end());
  }
  return grpc::Status::OK;
}

grpc::Status DevicePlugin::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                                    v1beta1::AllocateResponse* answer) {
  const std::shared_ptr<const Node> now = node_.now();
  for (const auto& container : request->container_requests()) {
    Result<Allocation> allocation = AllocationOf(Texts(container.devices_ids()));
    if (!allocation) return Refused(allocation.error());
    v1beta1::ContainerAllocateResponse& given = *answer->add_container_responses();
    for (const std::string& id : allocation->gpus) {
      const auto gpu = std::ranges::find(now->gpus, id, [](const Gpu& other) { return other.device.id; });
      if (gpu == now->gpus.end()) return Refused(Error::Make("this node has no GPU %s", id.c_str()));
      if (!gpu->works) return Refused(Error::Make("GPU %s does not work any more", id.c_str()));
      AddGpu(gpu->device, with_cdi_, given);
    }
    AddShare(now->shares, allocation->percent, with_cdi_, given);
  }
  return grpc::Status::OK;
}

grpc::Status DevicePlugin::PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest*,
                                             v1beta1::PreStartContainerResponse*) {
  return grpc::Status::OK;
}

}  // namespace xsched::kubernetes
