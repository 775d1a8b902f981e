#include "shim/common/real_dlsym.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>

namespace xsched::shim {

DlsymFunction RealDlsym() {
  static std::atomic<DlsymFunction> real{nullptr};
  DlsymFunction found = real.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  // By version, for our own dlsym has the same names. Since 2.34 it lives in libc itself.
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (found == nullptr) found = reinterpret_cast<DlsymFunction>(dlvsym(RTLD_NEXT, "dlsym", version));
  }
  real.store(found, std::memory_order_release);
  return found;
}

void* InSameLibrary(void* address, const char* name) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return nullptr;
  const char* path = map->l_name[0] != '\0' ? map->l_name : nullptr;  // null: the program itself
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = RealDlsym()(library, name);
  dlclose(library);
  return found;
}

}  // namespace xsched::shim
