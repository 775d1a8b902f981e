// The libraries of the process, as the dynamic linker knows them. Never loads one.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <utility>

namespace xsched {

// The library or program that contains `address`; null: none (generated code).
inline const link_map* LibraryAt(const void* address) {
  Dl_info info;
  link_map* library = nullptr;
  return dladdr1(address, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) != 0 ? library
                                                                                           : nullptr;
}

// A handle for a loaded library. Keeps it loaded until the end of the scope, or forever.
class OpenLibrary {
 public:
  // By its path or its SONAME.
  explicit OpenLibrary(const char* name) : handle_(dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {}
  // The program itself has no name, and its handle stands for the whole global scope.
  explicit OpenLibrary(const link_map* library)
      : handle_(library == nullptr ? nullptr
                                   : dlopen(library->l_name[0] == '\0' ? nullptr : library->l_name,
                                            RTLD_LAZY | RTLD_NOLOAD)) {}
  ~OpenLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  OpenLibrary(const OpenLibrary&) = delete;
  OpenLibrary& operator=(const OpenLibrary&) = delete;

  void* handle() const { return handle_; }
  void* KeepForGood() { return std::exchange(handle_, nullptr); }

 private:
  void* handle_;
};

}  // namespace xsched
