// What interception costs per call of the CUDA driver: the shim's wrapper against the function that it wraps,
// of the stand-in driver, which does at once what it is told. Pairs of short runs alternate, and the median
// of the differences counts, so that a machine's changes of speed cancel out. Heap allocations and threads
// that XSched adds are counted. Each case is a process of its own.
//
//   cuda_launch_bench [--json FILE]
//
// Exit status 1: XSched allocated memory in a call.
#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "hal/cuda/cu.h"
#include "xsched/cuda/hal.h"
#include "xsched/xsched.h"

// ---- allocations that XSched's libraries make ----

namespace {

std::atomic<uint64_t> allocations{0};
struct {
  uintptr_t begin, end;
} our_libraries[3];

void Count(void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  for (const auto& library : our_libraries) {
    if (address >= library.begin && address < library.end)
      allocations.fetch_add(1, std::memory_order_relaxed);
  }
}

void FindOurLibraries() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        const char* const names[] = {"libshimcuda.so", "libhalcuda.so", "libpreempt.so"};
        for (size_t i = 0; i < std::size(names); ++i) {
          if (std::strstr(info->dlpi_name, names[i]) == nullptr) continue;
          uintptr_t size = 0;
          for (int j = 0; j < info->dlpi_phnum; ++j)
            size = std::max<uintptr_t>(size, info->dlpi_phdr[j].p_vaddr + info->dlpi_phdr[j].p_memsz);
          our_libraries[i] = {info->dlpi_addr, info->dlpi_addr + size};
        }
        return 0;
      },
      nullptr);
}

}  // namespace

extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* malloc(size_t size) {
  Count(__builtin_return_address(0));
  return __libc_malloc(size);
}
extern "C" void* calloc(size_t count, size_t size) {
  Count(__builtin_return_address(0));
  return __libc_calloc(count, size);
}

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr int kCalls = 500;
constexpr int kPairs = 501;
constexpr CUstream kDefault = nullptr;

struct Case {
  const char* name;
  const char* auto_xqueue;
  bool competitor;
};
constexpr Case kCases[] = {{"unscheduled", "OFF", false},
                           {"scheduled, alone", "ON", false},
                           {"scheduled, with a more urgent competitor", "ON", true}};

// The functions called, of the driver or of the shim.
struct Driver {
  explicit Driver(void* library) {
    auto find = [library](auto& function, const char* name) {
      void* found = dlsym(library, name);
      if (found == nullptr) throw std::runtime_error(dlerror());
      std::memcpy(&function, &found, sizeof found);
    };
    find(launch, "cuLaunchKernel");
    find(copy, "cuMemcpyHtoDAsync_v2");
    find(record, "cuEventRecord");
    find(synchronize, "cuStreamSynchronize");
    find(create_event, "cuEventCreate");
  }
  decltype(&::cuLaunchKernel) launch;
  decltype(&::cuMemcpyHtoDAsync_v2) copy;
  decltype(&::cuEventRecord) record;
  decltype(&::cuStreamSynchronize) synchronize;
  decltype(&::cuEventCreate) create_event;
};

void* Open(const char* library) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(dlerror());
  return opened;
}

void Check(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": error " + std::to_string(result));
}

int64_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

class Program {
 public:
  Program() : library_(Open(XSCHED_BENCH_DRIVER)), native_(library_) {
    CUcontext context;
    CUmodule module;
    Check(Call<decltype(::cuInit)>("cuInit")(0), "cuInit");
    Check(Call<decltype(::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0), "retain");
    Check(Call<decltype(::cuCtxSetCurrent)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    Check(Call<decltype(::cuModuleLoadData)>("cuModuleLoadData")(&module, "any"), "cuModuleLoadData");
    Check(Call<decltype(::cuModuleGetFunction)>("cuModuleGetFunction")(&kernel_, module, "nop"), "nop");
    Check(Call<decltype(::cuMemAlloc_v2)>("cuMemAlloc_v2")(&memory_, 64), "cuMemAlloc");
    stream_ = NewStream();
  }

  Json Measure(const Case& which) {
    const int64_t threads = Threads();
    Driver shim(Open(XSCHED_BENCH_SHIM));
    FindOurLibraries();
    Check(shim.create_event(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    Check(Launch(shim, stream_), "cuLaunchKernel");
    Check(Launch(shim, kDefault), "cuLaunchKernel");
    if (allocations == 0) throw std::runtime_error("an event was made without a record: nothing is counted");
    if (which.competitor) AddCompetitor(shim);
    Json result = {{"case", which.name}};
    auto measure = [&](const char* name, auto&& call) {
      result["calls"].push_back(Compare(name, native_, shim, call));
    };
    std::printf("%s\n", which.name);
    measure("cuLaunchKernel", [this](const Driver& d) { return Launch(d, stream_); });
    measure("cuLaunchKernel, default stream", [this](const Driver& d) { return Launch(d, kDefault); });
    int value = 0;
    measure("cuMemcpyHtoDAsync", [&](const Driver& d) { return d.copy(memory_, &value, 4, stream_); });
    measure("cuEventRecord", [this](const Driver& d) { return d.record(event_, stream_); });
    measure("cuStreamSynchronize", [this](const Driver& d) { return d.synchronize(stream_); });
    measure("cuLaunchKernel, cuStreamSynchronize", [this](const Driver& d) {
      const CUresult launched = Launch(d, stream_);
      return launched != CUDA_SUCCESS ? launched : d.synchronize(stream_);
    });
    result["threads"] = Threads() - threads;
    std::printf("  %-36s %8lld\n", "threads added", static_cast<long long>(Threads() - threads));
    return result;
  }

 private:
  template <typename Function>
  Function* Call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  CUstream NewStream() const {
    CUstream stream = nullptr;
    Check(Call<decltype(::cuStreamCreate)>("cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
    return stream;
  }

  CUresult Launch(const Driver& driver, CUstream stream) const {
    return driver.launch(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  }

  // From now on the other streams may be held at any time.
  void AddCompetitor(const Driver& shim) const {
    CUstream other = NewStream();
    HwQueueHandle hwq = 0;
    XQueueHandle queue = 0;
    Check(Launch(shim, other), "cuLaunchKernel");
    Check(CudaQueueGet(&hwq, other), "CudaQueueGet");
    Check(XQueueGet(&queue, hwq), "XQueueGet");
    Check(XHintPriority(queue, PRIORITY_MAX), "XHintPriority");
    Check(shim.synchronize(other), "cuStreamSynchronize");
  }

  template <typename Call>
  double NsPerCall(const Driver& driver, const Call& call) const {
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) Check(call(driver), "a timed call");
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kCalls;
    // What is outstanding does not count in the next run.
    Check(driver.synchronize(stream_), "cuStreamSynchronize");
    Check(driver.synchronize(kDefault), "cuStreamSynchronize");
    return ns;
  }

  template <typename Call>
  Json Compare(const char* name, const Driver& native, const Driver& shim, const Call& call) const {
    NsPerCall(native, call);
    NsPerCall(shim, call);
    std::vector<double> natives;
    std::vector<double> differences;
    natives.reserve(kPairs);
    differences.reserve(kPairs);
    const uint64_t before = allocations;
    for (int i = 0; i < kPairs; ++i) {
      natives.push_back(NsPerCall(native, call));
      differences.push_back(NsPerCall(shim, call) - natives.back());
    }
    const uint64_t added = allocations - before;
    const double median = Median(differences);
    std::printf("  %-36s %8.1f ns added to %.0f (median of %d pairs), %llu heap allocations\n", name, median,
                Median(natives), kPairs, static_cast<unsigned long long>(added));
    std::fflush(stdout);
    return {{"call", name}, {"native_ns", Median(natives)}, {"added_ns", median}, {"allocations", added}};
  }

  static double Median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  void* library_;
  Driver native_;
  CUstream stream_ = nullptr;
  CUfunction kernel_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUevent event_ = nullptr;
};

// In a child: what a case leaves behind goes with it.
Json Run(const Case& which) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    setenv("STANDIN_CUDA_IMMEDIATE", "1", 1);
    setenv("XSCHED_SCHEDULER", "LCL", 1);
    setenv("XSCHED_AUTO_XQUEUE", which.auto_xqueue, 1);
    int status = 0;
    try {
      const std::string text = Program().Measure(which).dump();
      if (write(ends[1], text.data(), text.size()) < 0) status = 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "cuda_launch_bench: %s\n", error.what());
      status = 1;
    }
    std::fflush(stdout);
    _exit(status);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error(std::string(which.name) + ": failed");
  return Json::parse(text);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Json results = Json::array();
    for (const Case& which : kCases) results.push_back(Run(which));
    if (argc == 3 && std::strcmp(argv[1], "--json") == 0) std::ofstream(argv[2]) << results.dump(2) << "\n";
    for (const Json& result : results) {
      for (const Json& call : result["calls"]) {
        if (call["allocations"] > 0) return 1;
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_launch_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
