// Measures the cost of interception per call of the HIP runtime (bench/interception/cost.h) for each route,
// over a stand-in whose commands finish at once. Also counts heap allocations and threads that XSched adds.
//
//   hip_launch_bench [--json FILE]
//
// Exit status 1: XSched allocated memory in a call.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "hal/hip/testing/fake_runtime.h"
#include "hip/functions.h"
#include "interception/cost.h"
#include "shim/hip/testing/offered_runtime.h"
#include "xsched/hip/hal.h"
#include "xsched/xsched.h"

namespace {

namespace fs = std::filesystem;
using namespace xsched::hip;
using xsched::bench::Check;
using xsched::bench::Json;

enum class Route { kLinking, kPointer, kTable };
constexpr Route kRoutes[] = {Route::kLinking, Route::kPointer, Route::kTable};
constexpr const char* kRouteNames[] = {"by linking", "by pointer", "dispatch table"};

enum class How { kUnscheduled, kPassing, kAlone, kCompetitor };
constexpr How kHows[] = {How::kUnscheduled, How::kPassing, How::kAlone, How::kCompetitor};
constexpr const char* kHowNames[] = {"unscheduled", "passing through", "scheduled, alone",
                                     "scheduled, with a more urgent competitor"};

void* Open(const std::string& library) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(dlerror());
  return opened;
}

// A temporary file, which the destructor removes.
class OwnFile {
 public:
  explicit OwnFile(const char* name) : path_(fs::temp_directory_path() / (name + std::to_string(getpid()))) {}
  ~OwnFile() { fs::remove(path_); }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The measured functions, as `look_up` finds them in a library.
struct Functions {
  template <typename LookUp>
  Functions(void* library, LookUp* look_up) {
    auto find = [&](auto& function, const char* name) {
      void* found = look_up(library, name);
      if (found == nullptr) throw std::runtime_error(std::string("no ") + name);
      std::memcpy(&function, &found, sizeof found);
    };
    find(launch_module, "hipModuleLaunchKernel");
    find(launch, "hipLaunchKernel");
    find(copy, "hipMemcpyAsync");
    find(record, "hipEventRecord");
    find(synchronize, "hipStreamSynchronize");
    find(create_event, "hipEventCreateWithFlags");
    find(create_stream, "hipStreamCreate");
  }
  hipError_t (*launch_module)(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, hipStream_t, void**, void**);
  hipError_t (*launch)(const void*, dim3, dim3, void**, size_t, hipStream_t);
  hipError_t (*copy)(void*, const void*, size_t, hipMemcpyKind, hipStream_t);
  hipError_t (*record)(hipEvent_t, hipStream_t);
  hipError_t (*synchronize)(hipStream_t);
  hipError_t (*create_event)(hipEvent_t*, unsigned);
  hipError_t (*create_stream)(hipStream_t*);
};

// The arguments of the calls: handles of one runtime instance.
struct Side {
  Side(void* library, const Functions& functions) : call(functions) {
    reinterpret_cast<decltype(&FakeFinishAtOnce)>(dlsym(library, "FakeFinishAtOnce"))();
    Check(call.create_stream(&stream), "hipStreamCreate");
    Check(call.create_event(&event, kHipEventDisableTiming), "hipEventCreate");
  }
  hipError_t Launch(hipStream_t on) const {
    return call.launch_module(nullptr, 1, 1, 1, 1, 1, 1, 0, on, nullptr, nullptr);
  }
  void Settle() const {
    Check(call.synchronize(stream), "hipStreamSynchronize");
    Check(call.synchronize(nullptr), "hipStreamSynchronize");
  }

  Functions call;
  hipStream_t stream = nullptr;
  hipEvent_t event = nullptr;
};

// The wrapped functions, by a route.
Functions Wrapped(Route route, void* runtime) {
  using OfferTable = decltype(FakeOfferTable);
  if (route == Route::kTable) {
    constexpr uint64_t kAll = 1000;
    setenv("ROCPROFILER_REGISTER_LIBRARY", XSCHED_BENCH_SHIM, 1);
    reinterpret_cast<OfferTable*>(dlsym(runtime, "FakeOfferTable"))(kAll, 0);
    return Functions(runtime, dlsym);
  }
  void* shim = Open(XSCHED_BENCH_SHIM);
  if (route == Route::kLinking) return Functions(shim, dlsym);
  return Functions(runtime, reinterpret_cast<decltype(&dlsym)>(dlsym(shim, "dlsym")));
}

// From now on the other streams may be held at any time.
void AddCompetitor(const Side& side) {
  hipStream_t other = nullptr;
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  Check(side.call.create_stream(&other), "hipStreamCreate");
  Check(side.Launch(other), "hipModuleLaunchKernel");
  Check(HipQueueGet(&hwq, other), "HipQueueGet");
  Check(XQueueGet(&queue, hwq), "XQueueGet");
  Check(XHintPriority(queue, PRIORITY_MAX), "XHintPriority");
  Check(side.call.synchronize(other), "hipStreamSynchronize");
}

Json Measure(Route route, How how) {
  const OwnFile rules("xsched-bench-pass-");
  if (how == How::kPassing) {
    std::ofstream(rules.path()) << R"({"passthrough_mode": "blacklist", "libraries": []})";
    setenv("XSCHED_PASSTHROUGH_FILE", rules.path().c_str(), 1);
  }
  setenv("XSCHED_SCHEDULER", "LCL", 1);
  setenv("XSCHED_AUTO_XQUEUE", how == How::kUnscheduled ? "OFF" : "ON", 1);

  // This program is linked to no instance, so it is bound to the one that is loaded first.
  void* runtime = Open(XSCHED_BENCH_RUNTIME);
  // For comparison: another instance, which XSched does not intercept.
  const OwnFile copy("xsched-bench-runtime-");
  fs::copy_file(XSCHED_BENCH_RUNTIME, copy.path(), fs::copy_options::overwrite_existing);
  void* second = Open(copy.path());
  const Side native(second, Functions(second, dlsym));

  const int64_t threads = xsched::bench::Threads();
  const Functions wrapped = Wrapped(route, runtime);
  // The first call makes sure that the shim is loaded.
  hipStream_t first = nullptr;
  Check(wrapped.create_stream(&first), "hipStreamCreate");
  const char* const ours[] = {"libshimhip.so", "libhalhip.so", "libpreempt.so"};
  xsched::bench::CountAllocationsOf(ours);
  const Side ours_side(runtime, wrapped);
  if (xsched::bench::Allocations() == 0)
    throw std::runtime_error("a stream was made without a record: nothing is counted");
  Check(ours_side.Launch(ours_side.stream), "hipModuleLaunchKernel");
  Check(ours_side.Launch(nullptr), "hipModuleLaunchKernel");
  if (how == How::kCompetitor) AddCompetitor(ours_side);

  Json result;
  auto measure = [&](const char* name, auto&& call) {
    result["calls"].push_back(xsched::bench::Compare(
        name, [&] { return call(native); }, [&] { return call(ours_side); }, [&] { ours_side.Settle(); }));
  };
  measure("hipModuleLaunchKernel", [](const Side& s) { return s.Launch(s.stream); });
  measure("hipLaunchKernel",
          [](const Side& s) { return s.call.launch(nullptr, {}, {}, nullptr, 0, s.stream); });
  measure("hipLaunchKernel, null stream",
          [](const Side& s) { return s.call.launch(nullptr, {}, {}, nullptr, 0, nullptr); });
  measure("hipMemcpyAsync", [](const Side& s) { return s.call.copy(nullptr, nullptr, 4, 1, s.stream); });
  measure("hipEventRecord", [](const Side& s) { return s.call.record(s.event, s.stream); });
  measure("hipStreamSynchronize", [](const Side& s) { return s.call.synchronize(s.stream); });
  result["threads"] = xsched::bench::Threads() - threads;
  std::printf("  %-36s %8lld\n", "threads added", result["threads"].get<long long>());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<xsched::bench::Case> cases;
  for (How how : kHows) {
    for (Route route : kRoutes) {
      cases.push_back(
          {std::string(kHowNames[static_cast<int>(how)]) + ", " + kRouteNames[static_cast<int>(route)],
           [=] { return Measure(route, how); }});
    }
  }
  return xsched::bench::RunCases(cases, argc, argv);
}
