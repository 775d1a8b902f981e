#include "shim/cuda/callers.h"

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "base/env.h"
#include "shim/common/libraries.h"

namespace xsched::cuda {

constinit std::atomic<PassThrough> pass_through{PassThrough::kUnknown};

namespace {

constexpr char kVariable[] = "XSCHED_PASSTHROUGH_LIBS";
constexpr char kSeparators[] = ",:; ";

// One word per call site, so that it is read and written whole: its address, and whether it passes in the top
// bit.
constexpr size_t kCallers = 512;
constexpr uint64_t kPasses = uint64_t{1} << 63;
constinit std::atomic<uint64_t> callers[kCallers] = {};

}  // namespace

bool IsListed(const char* names, const char* library) {
  const char* slash = strrchr(library, '/');
  const char* base = slash == nullptr ? library : slash + 1;
  for (const char* name = names; *name != '\0';) {
    const size_t length = strcspn(name, kSeparators);
    if (length != 0 && strncmp(base, name, length) == 0) return true;
    name += length;
    name += strspn(name, kSeparators);
  }
  return false;
}

bool LooksUpPassThrough(const void* caller) {
  const char* names = EnvText(kVariable);
  pass_through.store(names == nullptr ? PassThrough::kNobody : PassThrough::kSome, std::memory_order_relaxed);
  if (names == nullptr) return false;
  const auto address = reinterpret_cast<uint64_t>(caller);
  std::atomic<uint64_t>& slot = callers[(address ^ address >> 9) % kCallers];
  uint64_t known = slot.load(std::memory_order_relaxed);
  if ((known & ~kPasses) != address) {
    const link_map* library = shim::LibraryAt(caller);
    bool passes = library != nullptr && IsListed(names, library->l_name);
    known = address | (passes ? kPasses : 0);
    slot.store(known, std::memory_order_relaxed);
  }
  return (known & kPasses) != 0;
}

void ForgetCallers() {
  if (pass_through.load(std::memory_order_relaxed) != PassThrough::kSome) return;
  for (std::atomic<uint64_t>& caller : callers) caller.store(0, std::memory_order_relaxed);
}

}  // namespace xsched::cuda
