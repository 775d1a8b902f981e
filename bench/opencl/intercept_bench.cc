// Measures the cost of interception per call: the shim as a layer over an OpenCL that does nothing, against
// direct calls of that OpenCL. Pairs of short runs alternate, and the median of their differences is used, so
// that changes of the machine's speed cancel out. Also counts heap allocations during the measured calls.
//
//   intercept_bench [--json FILE]        XSCHED_SCHEDULER=GLB, XSCHED_SOCKET=…: with a server
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace {
std::atomic<uint64_t> allocations{0};
}

extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCalls = 2000;
constexpr int kPairs = 501;

// ---- an OpenCL that does nothing ----

char the_queue[64];
cl_command_queue Queue() { return reinterpret_cast<cl_command_queue>(the_queue); }

template <typename T>
cl_int Answer(size_t size, void* value, T answer) {
  if (value != nullptr && size >= sizeof answer) std::memcpy(value, &answer, sizeof answer);
  return CL_SUCCESS;
}

cl_command_queue CL_API_CALL CreateQueue(cl_context, cl_device_id, cl_command_queue_properties,
                                         cl_int* error) {
  if (error != nullptr) *error = CL_SUCCESS;
  return Queue();
}
cl_int CL_API_CALL QueueInfo(cl_command_queue, cl_command_queue_info what, size_t size, void* value,
                             size_t*) {
  if (what == CL_QUEUE_PROPERTIES) return Answer(size, value, cl_command_queue_properties{0});
  return Answer(size, value, static_cast<void*>(the_queue));
}
cl_int CL_API_CALL DeviceInfo(cl_device_id, cl_device_info what, size_t size, void* value, size_t*) {
  if (what == CL_DEVICE_TYPE) return Answer(size, value, cl_device_type{CL_DEVICE_TYPE_CPU});
  if (what == CL_DEVICE_PLATFORM) return Answer(size, value, static_cast<void*>(the_queue));
  if (what != CL_DEVICE_NAME) return CL_INVALID_VALUE;
  std::strncpy(static_cast<char*>(value), "nothing", size);
  return CL_SUCCESS;
}
cl_int CL_API_CALL PlatformInfo(cl_platform_id, cl_platform_info, size_t size, void* value, size_t*) {
  std::strncpy(static_cast<char*>(value), "null", size);
  return CL_SUCCESS;
}
cl_int CL_API_CALL DeviceIds(cl_platform_id, cl_device_type, cl_uint, cl_device_id*, cl_uint* count) {
  *count = 0;
  return CL_SUCCESS;
}
cl_int CL_API_CALL OneQueue(cl_command_queue) { return CL_SUCCESS; }
cl_int CL_API_CALL Kernel(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*,
                          cl_uint, const cl_event*, cl_event*) {
  return CL_SUCCESS;
}
cl_int CL_API_CALL Copy(cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event*,
                        cl_event*) {
  return CL_SUCCESS;
}

cl_icd_dispatch NullOpenCl() {
  cl_icd_dispatch table{};
  table.clCreateCommandQueue = CreateQueue;
  table.clGetCommandQueueInfo = QueueInfo;
  table.clGetDeviceInfo = DeviceInfo;
  table.clGetPlatformInfo = PlatformInfo;
  table.clGetDeviceIDs = DeviceIds;
  table.clFlush = table.clFinish = table.clRetainCommandQueue = table.clReleaseCommandQueue = OneQueue;
  table.clEnqueueNDRangeKernel = Kernel;
  table.clEnqueueCopyBuffer = Copy;
  return table;
}

// ---- measuring ----

double NsPerCall(const cl_icd_dispatch& cl, void (*call)(const cl_icd_dispatch&)) {
  auto begin = Clock::now();
  for (int i = 0; i < kCalls; ++i) call(cl);
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kCalls;
}

void LaunchKernel(const cl_icd_dispatch& cl) {
  size_t global = 1;
  cl.clEnqueueNDRangeKernel(Queue(), nullptr, 1, nullptr, &global, nullptr, 0, nullptr, nullptr);
}
void CopyBuffer(const cl_icd_dispatch& cl) {
  cl.clEnqueueCopyBuffer(Queue(), nullptr, nullptr, 0, 0, 4, 0, nullptr, nullptr);
}
void Finish(const cl_icd_dispatch& cl) { cl.clFinish(Queue()); }

nlohmann::json Measure(const char* name, const cl_icd_dispatch& native, const cl_icd_dispatch& layer,
                       void (*call)(const cl_icd_dispatch&)) {
  NsPerCall(native, call);
  NsPerCall(layer, call);
  std::vector<double> differences;
  differences.reserve(kPairs);
  uint64_t before = allocations;
  for (int i = 0; i < kPairs; ++i) differences.push_back(NsPerCall(layer, call) - NsPerCall(native, call));
  uint64_t allocated = allocations - before;
  std::nth_element(differences.begin(), differences.begin() + kPairs / 2, differences.end());
  double median = differences[kPairs / 2];
  std::printf("%-24s %8.1f ns added (median of %d pairs), %llu heap allocations\n", name, median, kPairs,
              static_cast<unsigned long long>(allocated));
  return {{"call", name}, {"added_ns", median}, {"allocations", allocated}};
}

}  // namespace

int main(int argc, char** argv) {
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  void* shim = dlopen(XSCHED_BENCH_SHIM, RTLD_NOW);
  if (shim == nullptr) {
    std::fprintf(stderr, "intercept_bench: %s\n", dlerror());
    return 1;
  }
  auto init = reinterpret_cast<pfn_clInitLayer>(dlsym(shim, "clInitLayer"));
  static cl_icd_dispatch native = NullOpenCl();
  const cl_icd_dispatch* layer = nullptr;
  cl_uint entries = 0;
  if (init(sizeof native / sizeof(void*), &native, &entries, &layer) != CL_SUCCESS) return 1;
  layer->clCreateCommandQueue(nullptr, nullptr, 0, nullptr);

  nlohmann::json results = {Measure("clEnqueueNDRangeKernel", native, *layer, LaunchKernel),
                            Measure("clEnqueueCopyBuffer", native, *layer, CopyBuffer),
                            Measure("clFinish", native, *layer, Finish)};
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) std::ofstream(argv[2]) << results.dump(2) << "\n";
  return 0;
}
