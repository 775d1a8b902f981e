#include "kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "standin_hsa.h"

namespace standin_hsa {
namespace {

// The launched kernels, and the kernels that a test has added.
struct Record {
  std::mutex lock;
  std::map<std::string, uint64_t, std::less<>> dispatches;
  std::map<std::string, standin_hsa_kernel_function, std::less<>> brought;
};
Record& TheRecord() {
  static auto* const record = new Record;
  return *record;
}

std::atomic<uint64_t>& KernelTime() {
  static auto* const time_ns = [] {
    const char* text = getenv("STANDIN_HSA_KERNEL_US");
    return new std::atomic<uint64_t>(text == nullptr ? 0 : std::strtoull(text, nullptr, 10) * 1000);
  }();
  return *time_ns;
}

void SleepFor(std::chrono::nanoseconds duration) {
  if (duration.count() > 0) std::this_thread::sleep_for(duration);
}

void Nothing(const Arguments&) {}
void SpinUs(const Arguments& a) { SleepFor(std::chrono::microseconds(a.At<int>(0))); }
void AwaitWord(const Arguments& a) {
  const int* word = a.At<const int*>(0);
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < a.At<int>(8)) SleepFor(std::chrono::microseconds(100));
}
void Store(const Arguments& a) { __atomic_store_n(a.At<int*>(0), a.At<int>(8), __ATOMIC_RELEASE); }
void Add(const Arguments& a) { __atomic_fetch_add(a.At<int*>(0), a.At<int>(8), __ATOMIC_RELEASE); }
void Append(const Arguments& a) {
  int* log = a.At<int*>(0);
  log[1 + __atomic_fetch_add(log, 1, __ATOMIC_ACQ_REL)] = a.At<int>(8);
}
void Fill(const Arguments& a) { std::fill_n(a.At<int*>(0), a.At<int>(8), a.At<int>(12)); }
void RandomFill(const Arguments& a) {
  uint32_t state = a.At<uint32_t>(12);
  for (int i = 0; i < a.At<int>(8); ++i) {
    state = state * 1664525 + 1013904223;
    a.At<float*>(0)[i] = static_cast<float>(state >> 8) / (1 << 24);
  }
}
void VectorAdd(const Arguments& a) {
  for (int i = 0; i < a.At<int>(24); ++i)
    a.At<float*>(0)[i] = a.At<const float*>(8)[i] + a.At<const float*>(16)[i];
}
void Matmul(const Arguments& a) {
  const int m = a.At<int>(24), n = a.At<int>(28), k = a.At<int>(32);
  const float *left = a.At<const float*>(8), *right = a.At<const float*>(16);
  for (int i = 0; i < m * n; ++i) {
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += left[i / n * k + l] * right[l * n + i % n];
    a.At<float*>(0)[i] = sum;
  }
}
void Convolve(const Arguments& a) {
  const float *x = a.At<const float*>(8), *w = a.At<const float*>(16);
  for (int i = 0; i < a.At<int>(24); ++i) {
    float sum = 0;
    for (int j = 0; j < a.At<int>(28); ++j) sum += x[i + j] * w[j];
    a.At<float*>(0)[i] = sum;
  }
}
void Unknown(const Arguments&) {
  SleepFor(std::chrono::nanoseconds(KernelTime().load(std::memory_order_relaxed)));
}

constexpr std::pair<std::string_view, KernelFunction> kKernels[] = {{"nop", Nothing},
                                                                    {"spin_us", SpinUs},
                                                                    {"await", AwaitWord},
                                                                    {"store", Store},
                                                                    {"add", Add},
                                                                    {"append", Append},
                                                                    {"fill", Fill},
                                                                    {"random_fill", RandomFill},
                                                                    {"vector_add", VectorAdd},
                                                                    {"matmul", Matmul},
                                                                    {"convolve", Convolve}};

// "spin_us" of "_Z7spin_usi".
std::string_view Unmangled(std::string_view name) {
  if (!name.starts_with("_Z")) return name;
  size_t length = 0, i = 2;
  for (; i < name.size() && name[i] >= '0' && name[i] <= '9'; ++i)
    length = length * 10 + static_cast<size_t>(name[i] - '0');
  return name.substr(i, length);
}

KernelFunction FindKernel(const KernelCode& code) {
  if (KernelFunction blit = FindBlitKernel(code.name)) return blit;
  if (KernelFunction gemm = FindGemmKernel(code)) return gemm;
  const auto* kernel = std::find_if(std::begin(kKernels), std::end(kKernels),
                                    [&](const auto& known) { return known.first == Unmangled(code.name); });
  return kernel == std::end(kKernels) ? Unknown : kernel->second;
}

void Log(uint32_t gpu, uint64_t queue, const std::string& kernel) {
  static FILE* const file = [] {
    const char* path = getenv("STANDIN_HSA_LOG");
    return path == nullptr ? nullptr : std::fopen(path, "ae");
  }();
  if (file == nullptr) return;
  std::fprintf(file, "%u %lu %s\n", gpu, queue, kernel.c_str());
  std::fflush(file);
}

}  // namespace

size_t Arguments::count() const {
  return static_cast<size_t>(std::count_if(code_->arguments.begin(), code_->arguments.end(),
                                           [](const Argument& a) { return !a.kind.starts_with("hidden_"); }));
}
const Argument* Arguments::Find(std::string_view name) const {
  const std::vector<Argument>& all = code_->arguments;
  auto it = std::find_if(all.begin(), all.end(), [&](const Argument& a) { return a.name == name; });
  return it == all.end() ? nullptr : &*it;
}

void RunKernel(const hsa_kernel_dispatch_packet_t& packet, uint32_t gpu, uint64_t queue) {
  const KernelCode code = FindKernelCode(packet.kernel_object).value_or(KernelCode{});
  Log(gpu, queue, code.name);
  standin_hsa_kernel_function brought = nullptr;
  {
    std::lock_guard guard(TheRecord().lock);
    ++TheRecord().dispatches[code.name];
    if (auto it = TheRecord().brought.find(code.name); it != TheRecord().brought.end()) brought = it->second;
  }
  if (brought != nullptr) {
    brought(packet.kernarg_address, &packet);
  } else {
    FindKernel(code)(Arguments(packet.kernarg_address, &code));
  }
}

}  // namespace standin_hsa

using namespace standin_hsa;

uint64_t standin_hsa_dispatches(const char* kernel) {
  std::lock_guard guard(TheRecord().lock);
  uint64_t sum = 0;
  for (const auto& [name, count] : TheRecord().dispatches) {
    if (kernel == nullptr || name == kernel) sum += count;
  }
  return sum;
}
void standin_hsa_set_kernel(const char* kernel, standin_hsa_kernel_function function) {
  std::lock_guard guard(TheRecord().lock);
  if (function == nullptr) {
    TheRecord().brought.erase(kernel);
  } else {
    TheRecord().brought[kernel] = function;
  }
}
void standin_hsa_set_kernel_time(uint64_t ns) { KernelTime().store(ns, std::memory_order_relaxed); }
