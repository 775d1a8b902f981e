#include "base/driver_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "base/env.h"
#include "base/libraries.h"
#include "base/lock_order.h"
#include "base/log.h"

namespace xsched {

void* OpenNamedLibrary(const char* variable) {
  const char* path = EnvText(variable);
  if (path == nullptr) return nullptr;
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  static std::atomic<bool> warned{false};
  if (library == nullptr && !warned.exchange(true)) XSCHED_WARN("%s: %s", variable, dlerror());
  return library;
}

void* OpenDriverLibrary(const char* variable, const char* name) {
  if (void* library = OpenNamedLibrary(variable)) return library;
  return OpenLibrary(name).KeepForGood();
}

void WarnIfNotIntercepted(const char* platform) {
  static constinit std::atomic<bool> looked{false};
  if (looked.exchange(true, std::memory_order_relaxed)) return;
  if (!EnvBool("XSCHED_AUTO_XQUEUE").value_or(false)) return;
  char shim[64];
  snprintf(shim, sizeof shim, "libshim%s.so.%d", platform, XSCHED_SOVERSION);
  if (void* loaded = dlopen(shim, RTLD_LAZY | RTLD_NOLOAD)) {
    dlclose(loaded);
    return;
  }
  XSCHED_WARN(
      "%s is not loaded, so only commands of XQueueSubmit are scheduled: start the program by \"xsched run\" "
      "(LD_LIBRARY_PATH alone is not enough any more)",
      shim);
}

void FindFunctions(void* library, const char* const* names, int count, void* functions) {
  lock_order::CheckCall(Calls::kDriver);
  auto* place = static_cast<char*>(functions);
  for (int i = 0; i < count; ++i, place += sizeof(void*)) {
    void* function = dlsym(library, names[i]);
    memcpy(place, &function, sizeof function);
  }
}

}  // namespace xsched
