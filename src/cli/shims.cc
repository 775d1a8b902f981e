#include "cli/shims.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "cli/locations.h"
#include "cli/reach.h"

namespace xsched::cli {
namespace {

void Add(FoundShims& shims, std::string Shims::*place, const char* name,
         bool (*can_be_named)(const std::string&)) {
  const std::optional<std::string> shim = FindLibrary(name);
  if (!shim) {
    shims.missing.push_back(name);
  } else if (!can_be_named(*shim)) {
    shims.unloadable.push_back(*shim);
  } else {
    shims.found.*place = *shim;
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

FoundShims FindShims(const std::string& route) {
  FoundShims shims;
  Add(shims, &Shims::opencl, kOpenClShim, route == "preload" ? CanBePreloaded : CanBeLayer);
  if (!kPreloads) return shims;
  // Every program below loads what is preloaded: only what can be of use.
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) Add(shims, &Shims::cuda, kCudaShim, CanBePreloaded);
  if (HasHip()) Add(shims, &Shims::hip, kHipShim, CanBePreloaded);
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
