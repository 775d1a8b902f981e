#include "shim/hip/profiler.h"

#include <dlfcn.h>

#include "base/libraries.h"
#include "base/loaded_libraries.h"
#include "shim/common/dl_hooks.h"

namespace xsched::hip {
namespace {

constexpr char kName[] = "rocprofiler_set_api_table";
// The beginning of its file's name, which may go on with a version or with what a wheel has put there.
constexpr char kFile[] = "librocprofiler-sdk";

// Searches the library and the libraries that it needs.
void* FindIn(const LoadedLibrary& library) {
  const OpenLibrary open(library.path);
  return open.handle() == nullptr ? nullptr : shim::RealDlsym(open.handle(), kName);
}

}  // namespace

SetTable* ProfilersSetTable() {
  // Behind this library in the global scope.
  void* found = shim::RealDlsym(RTLD_NEXT, kName);
  if (found != nullptr) return reinterpret_cast<SetTable*>(found);
  // In the scope of a program's own libraries, as Python loads them. Natively the runtime would find it
  // there.
  Array<LoadedLibrary> libraries;
  if (!FindLoadedLibraries(kFile, &libraries)) return nullptr;
  for (const LoadedLibrary& library : libraries) {
    found = FindIn(library);
    if (found != nullptr) break;
  }
  return reinterpret_cast<SetTable*>(found);
}

}  // namespace xsched::hip
