#include "interception/allocations.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

namespace xsched::bench {
namespace {

constexpr size_t kMaxLibraries = 4;
std::atomic<uint64_t> allocations{0};
struct {
  uintptr_t begin, end;
} counted[kMaxLibraries];

void Count(void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  for (const auto& library : counted) {
    if (address >= library.begin && address < library.end)
      allocations.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace

void CountAllocationsOf(std::span<const char* const> names) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        const auto& wanted = *static_cast<std::span<const char* const>*>(data);
        for (size_t i = 0; i < std::min(wanted.size(), kMaxLibraries); ++i) {
          if (std::strstr(info->dlpi_name, wanted[i]) == nullptr) continue;
          uintptr_t size = 0;
          for (int j = 0; j < info->dlpi_phnum; ++j)
            size = std::max<uintptr_t>(size, info->dlpi_phdr[j].p_vaddr + info->dlpi_phdr[j].p_memsz);
          counted[i] = {info->dlpi_addr, info->dlpi_addr + size};
        }
        return 0;
      },
      &names);
}

uint64_t Allocations() { return allocations; }

}  // namespace xsched::bench

extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* malloc(size_t size) {
  xsched::bench::Count(__builtin_return_address(0));
  return __libc_malloc(size);
}
extern "C" void* calloc(size_t count, size_t size) {
  xsched::bench::Count(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
