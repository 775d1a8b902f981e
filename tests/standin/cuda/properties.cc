// The properties of devices, and the devices that the process sees.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "context.h"
#include "driver.h"
#include "memory.h"
#include "stream.h"

namespace standin {
namespace {

// Named by the physical ordinal, so that it stays the same whatever CUDA_VISIBLE_DEVICES says.
std::string BusIdOf(int ordinal) {
  char text[32];
  std::snprintf(text, sizeof(text), "0000:%02X:00.0", 0x10 + ordinal);
  return text;
}

CUuuid UuidOf(int ordinal) {
  CUuuid uuid{};
  std::memcpy(uuid.bytes, "standin-cuda-dev", sizeof(uuid.bytes));
  uuid.bytes[15] = static_cast<char>('0' + ordinal);
  return uuid;
}

std::string UuidTextOf(int ordinal) {
  const CUuuid uuid = UuidOf(ordinal);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof(byte), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

int DeviceNamed(const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    if (name == std::to_string(i) || (name.starts_with("GPU-") && UuidTextOf(i).starts_with(name))) return i;
  }
  return -1;
}

}  // namespace

std::vector<int> VisibleDevices(int count) {
  std::vector<int> visible;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int i = 0; i < count; ++i) visible.push_back(i);
    return visible;
  }
  std::istringstream in(list);
  for (std::string name; std::getline(in, name, ',');) {
    const int ordinal = DeviceNamed(name, count);
    if (ordinal < 0) break;  // the first that does not exist ends the list
    visible.push_back(ordinal);
  }
  return visible;
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = DriverVersion();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  Lock lock;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = DeviceCount();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  Lock lock;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (DeviceAt(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, length, "XSched stand-in");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = UuidOf(DeviceAt(device)->ordinal());
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return standin::cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, length, "%s", BusIdOf(DeviceAt(device)->ordinal()).c_str());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  Lock lock;
  for (int i = 0; i < DeviceCount(); ++i) {
    if (BusIdOf(DeviceAt(i)->ordinal()) != text) continue;
    *device = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = DeviceMemory();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  Lock lock;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 0x7fffffff;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 49152;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1980000;
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      *value = 0x10 + DeviceAt(device)->ordinal();
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = CU_COMPUTEMODE_DEFAULT;
      break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      *value = 3;
      break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
      *value = 1;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice) {
  *major = 9;
  *minor = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  *can = device != peer;
  return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned int) { return CUDA_SUCCESS; }
CUresult cuCtxDisablePeerAccess(CUcontext) { return CUDA_SUCCESS; }

CUresult cuProfilerStart() { return CUDA_SUCCESS; }
CUresult cuProfilerStop() { return CUDA_SUCCESS; }

}  // namespace standin
