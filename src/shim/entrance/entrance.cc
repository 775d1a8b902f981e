// A library with the name of a platform's driver, for programs that are started as with XSched 1.2: with
// LD_LIBRARY_PATH alone. It says in one line that this does not schedule them any more. Otherwise it is the
// driver, which it needs by its absolute path, and whose functions programs find through it.
#include <stdlib.h>
#include <string.h>

#include "base/driver_library.h"

namespace {

// True if a list of libraries in the environment has the shim. A layer is loaded later than this.
bool Names(const char* variable) {
  const char* libraries = getenv(variable);
  return libraries != nullptr && strstr(libraries, "libshim" XSCHED_PLATFORM) != nullptr;
}

__attribute__((constructor)) void Entered() {
  if (!Names("LD_PRELOAD") && !Names(XSCHED_LAYERS)) xsched::WarnIfNotIntercepted(XSCHED_PLATFORM);
}

}  // namespace
