#include "kernels.h"

#include <atomic>
#include <cstring>

#include "standin.h"

namespace standin {
namespace {

std::atomic<uint64_t> kernel_time_ns{0};

template <typename T>
T Get(const Arguments& arguments, size_t offset) {
  T value;
  std::memcpy(&value, arguments.data() + offset, sizeof(T));
  return value;
}
int* Pointer(const Arguments& arguments, size_t offset = 0) { return Get<int*>(arguments, offset); }

void Append(Context&, const Arguments& a) {
  int* log = Pointer(a);
  log[1 + log[0]] = Get<int>(a, 8);
  __atomic_store_n(&log[0], log[0] + 1, __ATOMIC_RELEASE);
}
void Nothing(Context&, const Arguments&) {}
void Store(Context&, const Arguments& a) { __atomic_store_n(Pointer(a), Get<int>(a, 8), __ATOMIC_RELEASE); }
void Add(Context&, const Arguments& a) { __atomic_fetch_add(Pointer(a), Get<int>(a, 8), __ATOMIC_RELEASE); }
void Fill(Context&, const Arguments& a) {
  for (int i = 0; i < Get<int>(a, 8); ++i) Pointer(a)[i] = Get<int>(a, 12);
}
void Copy(Context&, const Arguments& a) { *Pointer(a) = *Pointer(a, 8); }
void Work(Context&, const Arguments& a) {
  auto* beat = Get<uint64_t*>(a, 0);
  if (beat == nullptr) return;
  __atomic_fetch_add(&beat[0], 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&beat[1], 1, __ATOMIC_RELEASE);
}
void Fault(Context& context, const Arguments&) { context.lost = CUDA_ERROR_ILLEGAL_ADDRESS; }

// "spin_us" of "_Z7spin_usi".
std::string_view Unmangled(std::string_view name) {
  if (!name.starts_with("_Z")) return name;
  size_t length = 0, i = 2;
  for (; i < name.size() && name[i] >= '0' && name[i] <= '9'; ++i) length = length * 10 + (name[i] - '0');
  return name.substr(i, length);
}

}  // namespace

const std::vector<Kernel>& Kernels() {
  static const auto* const kernels =
      new std::vector<Kernel>{{"nop", {}, Nothing},
                              {"spin_us", {4}, Nothing, 0},
                              {"store", {8, 4}, Store},
                              {"add", {8, 4}, Add},
                              {"fill", {8, 4, 4}, Fill},
                              {"copy", {8, 8}, Copy},
                              {"append", {8, 4}, Append},
                              {"append_after", {8, 4, 4}, Append, 2},
                              {"work", {8, 4}, Work, 1, std::chrono::nanoseconds(10)},
                              {"fault", {}, Fault}};
  return *kernels;
}

const Kernel* FindKernel(std::string_view name) {
  for (const Kernel& kernel : Kernels()) {
    if (Unmangled(name) == kernel.name) return &kernel;
  }
  return nullptr;
}

size_t OffsetOf(const Kernel& kernel, size_t index) {
  size_t offset = 0;
  for (size_t i = 0;; ++i) {
    const size_t size = kernel.parameter_sizes[i];
    offset = (offset + size - 1) / size * size;
    if (i == index) return offset;
    offset += size;
  }
}

Step KernelStep(Context& context, const Kernel& kernel, Arguments arguments) {
  std::chrono::nanoseconds duration(kernel_time_ns.load(std::memory_order_relaxed));
  if (kernel.duration_parameter >= 0) {
    duration = kernel.duration_unit * Get<uint32_t>(arguments, OffsetOf(kernel, kernel.duration_parameter));
  }
  Step step{Step::Kind::kKernel, [&context, &kernel, a = std::move(arguments)] { kernel.run(context, a); }};
  step.duration = duration;
  return step;
}

}  // namespace standin

void standin_set_kernel_time(uint64_t ns) { standin::kernel_time_ns.store(ns, std::memory_order_relaxed); }
