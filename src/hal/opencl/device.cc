#include "hal/opencl/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/pci_address.h"
#include "hal/opencl/pci_domains.h"

namespace xsched::opencl {
namespace {

// PCI addresses use the bits below.
constexpr XDeviceId kHashed = 0x80000000u;

// cl_nv_device_attribute_query and cl_amd_device_attribute_query; not in every installed header.
constexpr cl_device_info kPciBusNv = 0x4008;
constexpr cl_device_info kPciSlotNv = 0x4009;
constexpr cl_device_info kPciDomainNv = 0x400A;
constexpr cl_device_info kTopologyAmd = 0x4037;
constexpr cl_uint kTopologyTypePcieAmd = 1;
constexpr uint32_t kVendorAmd = 0x1002;  // of PCI
// cl_khr_pci_bus_info
constexpr cl_device_info kPciBusInfoKhr = 0x410F;

struct PciBusInfoKhr {
  cl_uint domain;
  cl_uint bus;
  cl_uint device;
  cl_uint function;
};

struct TopologyAmd {
  cl_uint type;
  unsigned char unused[17];
  unsigned char bus;
  unsigned char device;
  unsigned char function;
};

template <typename Value>
bool Query(const Functions& next, cl_device_id device, cl_device_info what, Value* value) {
  size_t size = 0;
  return next.clGetDeviceInfo(device, what, sizeof *value, value, &size) == CL_SUCCESS &&
         size == sizeof *value;
}

// A text property of a device or platform; empty on failure. Longer texts are cut.
template <size_t kSize>
void QueryText(const Functions& next, cl_device_id device, cl_device_info what, char (&text)[kSize]) {
  text[0] = '\0';
  size_t size = 0;
  if (next.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return;
  Array<char> whole;
  if (!whole.Reserve(size)) return;
  if (next.clGetDeviceInfo(device, what, size, whole.data(), nullptr) != CL_SUCCESS) return;
  snprintf(text, kSize, "%.*s", static_cast<int>(size), whole.data());
}

cl_device_id RootDevice(const Functions& next, cl_device_id device) {
  cl_device_id parent = nullptr;
  // Drivers of OpenCL 1.1 do not know this query.
  while (Query(next, device, CL_DEVICE_PARENT_DEVICE, &parent) && parent != nullptr) device = parent;
  return device;
}

bool QueryTopology(const Functions& next, cl_device_id device, TopologyAmd* topology) {
  return Query(next, device, kTopologyAmd, topology) && topology->type == kTopologyTypePcieAmd;
}

bool QueryDevices(const Functions& next, cl_platform_id platform, Array<cl_device_id>* devices) {
  cl_uint count = 0;
  return next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) == CL_SUCCESS &&
         devices->Append(count) &&
         next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices->data(), nullptr) == CL_SUCCESS;
}

// The user may have put the devices in another order.
bool OrderIsChosen() {
  return getenv("ROCR_VISIBLE_DEVICES") != nullptr || getenv("GPU_DEVICE_ORDINAL") != nullptr;
}

// This query does not report the domain. If several domains have a device at this place, the driver lists
// them in the order of their domains: if it lists all, that says which one this is. 0: it is not known.
XDeviceId AddressOfAmd(const Functions& next, cl_device_id device, const TopologyAmd& topology,
                       const char* sysfs) {
  const auto in = [&](uint32_t domain) {
    return PciAddress(domain, topology.bus, topology.device, topology.function);
  };
  const Array<uint32_t> exact =
      PciDomains(sysfs, kVendorAmd, topology.bus, topology.device, topology.function);
  // Of a divided GPU, the function is that of the part, and only the whole GPU is in sysfs.
  const Array<uint32_t> whole = PciDomains(sysfs, kVendorAmd, topology.bus, topology.device, 0);
  const Array<uint32_t>& domains = exact.empty() ? whole : exact;
  if (domains.empty()) return in(0);
  if (domains.size() == 1) return in(domains[0]);
  if (OrderIsChosen()) return 0;
  cl_platform_id platform = nullptr;
  Array<cl_device_id> devices;
  if (!Query(next, device, CL_DEVICE_PLATFORM, &platform) || !QueryDevices(next, platform, &devices))
    return 0;
  size_t listed = 0;
  size_t place = 0;
  for (const cl_device_id other : devices) {
    if (TopologyAmd of{}; !QueryTopology(next, other, &of) || of.bus != topology.bus ||
                          of.device != topology.device || of.function != topology.function)
      continue;
    if (other == device) place = listed;
    ++listed;
  }
  return listed == domains.size() ? in(domains[place]) : 0;
}

// 0: the driver does not report it.
XDeviceId FindPciAddress(const Functions& next, cl_device_id device, const char* sysfs) {
  if (PciBusInfoKhr pci{}; Query(next, device, kPciBusInfoKhr, &pci)) {
    return PciAddress(pci.domain, pci.bus, pci.device, pci.function);
  }
  cl_uint bus = 0;
  cl_uint slot = 0;
  if (Query(next, device, kPciBusNv, &bus) && Query(next, device, kPciSlotNv, &slot)) {
    cl_uint domain = 0;
    Query(next, device, kPciDomainNv, &domain);
    return PciAddress(domain, bus, slot >> 3, slot & 7);
  }
  if (TopologyAmd topology{}; QueryTopology(next, device, &topology))
    return AddressOfAmd(next, device, topology, sysfs);
  return 0;
}

// FNV-1a over the text and its end.
uint32_t Hash(uint32_t hash, const char* text) {
  const size_t size = strlen(text) + 1;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 16777619u;
  return hash;
}

// The position of `device` among the devices of the same name on its platform.
uint32_t PlaceAmongNamesakes(const Functions& next, cl_platform_id platform, cl_device_id device,
                             const char* name) {
  Array<cl_device_id> devices;
  if (!QueryDevices(next, platform, &devices)) return 0;
  uint32_t place = 0;
  for (size_t i = 0; i < devices.size() && devices[i] != device; ++i) {
    char other[sizeof DeviceIdentity{}.name];
    QueryText(next, devices[i], CL_DEVICE_NAME, other);
    place += strcmp(other, name) == 0;
  }
  return place;
}

XDeviceId HashedId(const Functions& next, cl_device_id device, const char* name) {
  cl_platform_id platform = nullptr;
  char platform_name[128] = "";
  uint32_t place = 0;
  if (Query(next, device, CL_DEVICE_PLATFORM, &platform)) {
    next.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name - 1, platform_name, nullptr);
    place = PlaceAmongNamesakes(next, platform, device, name);
  }
  uint32_t hash = Hash(Hash(2166136261u, platform_name), name);
  return ((hash ^ place) * 16777619u) | kHashed;
}

XDeviceType TypeOf(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return kDeviceTypeGPU;
  if (type & CL_DEVICE_TYPE_CPU) return kDeviceTypeCPU;
  if (type & (CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM)) return kDeviceTypeASIC;
  return kDeviceTypeUnknown;
}

}  // namespace

DeviceIdentity IdentifyDevice(const Functions& next, cl_device_id any_device, const char* sysfs) {
  DeviceIdentity identity;
  cl_device_id device = RootDevice(next, any_device);
  QueryText(next, device, CL_DEVICE_NAME, identity.name);
  cl_device_type type = 0;
  Query(next, device, CL_DEVICE_TYPE, &type);
  const XDeviceId address = FindPciAddress(next, device, sysfs);
  const XDeviceId id = address == 0 ? HashedId(next, device, identity.name) : address;
  identity.device = MakeDevice(TypeOf(type), id);
  if (address != 0 && TypeOf(type) == kDeviceTypeGPU) identity.device = PciDeviceAt(sysfs, address);
  return identity;
}

bool RunsCommandsInCalls(const Functions& next, cl_device_id device) {
  cl_platform_id platform = nullptr;
  char platform_name[128] = "";
  char name[64];
  if (Query(next, device, CL_DEVICE_PLATFORM, &platform))
    next.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name - 1, platform_name, nullptr);
  QueryText(next, device, CL_DEVICE_NAME, name);
  // PoCL; but not its devices without threads.
  return strcmp(platform_name, "Portable Computing Language") != 0 || strncmp(name, "basic", 5) == 0 ||
         strncmp(name, "cpu-minimal", 11) == 0;
}

int DeviceVersion(const Functions& next, cl_device_id device) {
  char text[64];
  QueryText(next, device, CL_DEVICE_VERSION, text);
  int major = 0;
  int minor = 0;
  return sscanf(text, "OpenCL %d.%d", &major, &minor) == 2 ? major * 100 + minor : 0;
}

}  // namespace xsched::opencl
