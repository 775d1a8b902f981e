#include "cli/shims.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "cli/locations.h"

namespace xsched::cli {
namespace {

void Add(FoundShims& shims, std::string Shims::*place, const char* name) {
  if (std::optional<std::string> shim = FindLibrary(name)) {
    shims.found.*place = *shim;
  } else {
    shims.missing.push_back(name);
  }
}

// What is preloaded must not bring a sanitizer that the program lacks: it would end at its start.
#ifdef XSCHED_SANITIZED
constexpr bool kPreloads = false;
#else
constexpr bool kPreloads = true;
#endif

// Programs may bring a runtime of their own (PyTorch's do), but not the kernel's driver.
bool HasHip() { return access("/dev/kfd", F_OK) == 0 || !FindHipRuntime().empty(); }

}  // namespace

FoundShims FindShims() {
  FoundShims shims;
  Add(shims, &Shims::opencl, kOpenClShim);
  if (!kPreloads) return shims;
  // Every program below loads what is preloaded: only what can be of use.
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) Add(shims, &Shims::cuda, kCudaShim);
  if (HasHip()) Add(shims, &Shims::hip, kHipShim);
  return shims;
}

std::string FindHipRuntime() {
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
    void* library = dlopen(name, RTLD_LAZY);
    link_map* map = nullptr;
    if (library != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) return map->l_name;
  }
  return "";
}

}  // namespace xsched::cli
