// This node's GPUs as devices of dynamic resource allocation (DRA, resource.k8s.io/v1), which Kubernetes'
// scheduler allocates to ResourceClaims. Pure.
//
// A GPU is offered in one of two forms:
//   slots      It is several devices, each an equal part of it: "gpu-…-0-of-10" to "gpu-…-9-of-10". A claim
//   of several slots has their
//              sum. All versions with resource.k8s.io/v1 know this.
//   capacity   It is one device that several claims may have, each with a part of its capacity "share", in
//   percent. This needs the
//              feature DRAConsumableCapacity.
// A name says how many slots there are, so that after a change of their number no old claim is taken for a
// new one.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/gpus.h"

namespace xsched::kubernetes {

// The name of our driver. Attributes and capacities without a domain are of it.
inline constexpr const char* kDriver = "gpu.xsched.org";
// Of a device: the id of its GPU. Slots of one GPU have the same.
inline constexpr const char* kGpuAttribute = "gpu";
// Of a device: percent of its GPU.
inline constexpr const char* kShareCapacity = "share";

// So many devices can a claim have. So a claim can have all slots of a GPU.
inline constexpr int kMostSlots = 32;

struct Division {
  int slots = 10;
  bool by_capacity = false;  // `slots` does not count then
};

struct DraDevice {
  std::string name;  // a DNS label
  std::string gpu;   // Gpu::device.id
  int numa_node = -1;
};

// Those of the GPUs that work, in the order of GPUs.
std::vector<DraDevice> DraDevicesOf(const std::vector<Gpu>& gpus, const Division& division);
// Why this GPU cannot be offered: its id gives no name of a device, or that of another GPU. "": it can.
std::string ProblemOfDraName(const std::vector<Gpu>& gpus, const Gpu& gpu);
// The GPU of which the device is a part, in whatever form it is or was offered. Null: there is none.
const Gpu* GpuOfDraDevice(const std::vector<Gpu>& gpus, const std::string& device);

// What the name of a slot says.
struct DraSlot {
  std::string gpu;  // the part of the name that its GPU's slots have in common
  int slots = 0;    // of this GPU
};
// nullopt: the device is no slot.
std::optional<DraSlot> SlotOf(const std::string& device);
constexpr int PercentOfSlot(int slots) { return 100 / slots; }

// What is published of them: the member `devices` of each ResourceSlice.
std::vector<nlohmann::json> PublishedDevices(const std::vector<DraDevice>& devices, const Division& division);

}  // namespace xsched::kubernetes
