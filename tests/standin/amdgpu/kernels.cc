#include "kernels.h"

#include <atomic>
#include <map>
#include <mutex>

#include "code_objects.h"

namespace standin_amdgpu {
namespace {

struct Kernels {
  std::mutex mutex;
  std::map<std::string, standin_amdgpu_function, std::less<>> functions;
  std::map<std::string, standin_amdgpu_step, std::less<>> waves;
  std::map<std::string, uint64_t, std::less<>> dispatches;
  uint64_t r_debug = 0;
};

Kernels& TheKernels() {
  static auto* const kernels = new Kernels;
  return *kernels;
}

template <typename Map>
typename Map::mapped_type ValueOr0(const Map& map, const std::string& key) {
  auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

template <typename Map>
void Assign(Map& map, const char* key, typename Map::mapped_type value) {
  if (value == nullptr) {
    map.erase(key);
  } else {
    map[key] = value;
  }
}

}  // namespace

void UseCodeObjectsOf(uint64_t r_debug) {
  std::lock_guard lock(TheKernels().mutex);
  TheKernels().r_debug = r_debug;
}

Kernel BeginKernel(uint64_t descriptor) {
  Kernels& kernels = TheKernels();
  std::lock_guard lock(kernels.mutex);
  Kernel kernel{.name = NameOfKernel(kernels.r_debug, descriptor)};
  ++kernels.dispatches[kernel.name];
  kernel.function = ValueOr0(kernels.functions, kernel.name);
  kernel.step = ValueOr0(kernels.waves, kernel.name);
  return kernel;
}

}  // namespace standin_amdgpu

using standin_amdgpu::TheKernels;

void standin_amdgpu_set_kernel(const char* kernel, standin_amdgpu_function function) {
  std::lock_guard lock(TheKernels().mutex);
  standin_amdgpu::Assign(TheKernels().functions, kernel, function);
}

void standin_amdgpu_set_wave(const char* kernel, standin_amdgpu_step step) {
  std::lock_guard lock(TheKernels().mutex);
  standin_amdgpu::Assign(TheKernels().waves, kernel, step);
}

uint64_t standin_amdgpu_dispatches(const char* kernel) {
  std::lock_guard lock(TheKernels().mutex);
  uint64_t sum = 0;
  for (const auto& [name, count] : TheKernels().dispatches) {
    if (kernel == nullptr || name == kernel) sum += count;
  }
  return sum;
}
