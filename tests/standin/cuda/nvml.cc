// A libnvidia-ml.so.1 with what programs ask of memory: the stand-in's first device, as if nobody used it.
#include <cstring>

extern "C" {
#pragma GCC visibility push(default)

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) {
  static int device;
  if (index != 0 || out == nullptr) return 2;
  *out = &device;
  return 0;
}

struct PciInfo {
  char former_bus_id[16];
  unsigned domain, bus, device;
  unsigned ids[2];
  char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(void*, PciInfo* out) {
  *out = {};
  out->bus = 0x10;
  return 0;
}

struct MemoryInfo {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void*, MemoryInfo* out) {
  *out = {1 << 30, 1 << 30, 0};
  return 0;
}

struct MemoryInfoV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
int nvmlDeviceGetMemoryInfo_v2(void*, MemoryInfoV2* out) {
  *out = {out->version, 1 << 30, 1 << 20, (1 << 30) - (1 << 20), 0};
  return 0;
}

#pragma GCC visibility pop
}
