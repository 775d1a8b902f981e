// A library that is linked to NVML and asks for its functions by name, as libraries do that are loaded for
// themselves (RTLD_LOCAL): only in its own scope there is an NVML.
#include <dlfcn.h>

extern "C" {
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);
__attribute__((visibility("default"))) void* FindByName(const char* name);
}

void* FindByName(const char* name) {
  void* device = nullptr;
  return nvmlDeviceGetHandleByIndex_v2(0, &device) == 0 ? dlsym(RTLD_DEFAULT, name) : nullptr;
}
