#include "base/loaded_libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

namespace xsched {
namespace {

void Set(const void* base, const char* path, LoadedLibrary* out) {
  out->base = base;
  snprintf(out->path, sizeof out->path, "%s", path);
}

// Null: it has none.
const char* SoName(const dl_phdr_info& info) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
  }
  if (dynamic == nullptr) return nullptr;
  ElfW(Addr) strings = 0;
  ElfW(Xword) name = 0;
  bool named = false;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_STRTAB) strings = dynamic->d_un.d_ptr;
    if (dynamic->d_tag != DT_SONAME) continue;
    name = dynamic->d_un.d_val;
    named = true;
  }
  // The dynamic linker stores an address there. A library that it is still mapping has an offset instead.
  if (!named || strings < info.dlpi_addr) return nullptr;
  return reinterpret_cast<const char*>(strings) + name;
}

struct Search {
  const char* beginning;
  Array<LoadedLibrary>* out;
  bool ok = true;

  bool Matches(const char* name) const {
    return name != nullptr && strncmp(name, beginning, strlen(beginning)) == 0;
  }
};

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  if (!search.Matches(FileName(info->dlpi_name)) && !search.Matches(SoName(*info))) return 0;
  LoadedLibrary library;
  Set(reinterpret_cast<const void*>(info->dlpi_addr), info->dlpi_name, &library);
  search.ok = search.out->Push(library);
  return search.ok ? 0 : 1;
}

struct LoadCounts {
  uint64_t loads = 0;
  uint64_t unloads = 0;
};

LoadCounts Counts() {
  LoadCounts counts;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<LoadCounts*>(data) = {info->dlpi_adds, info->dlpi_subs};
        return 1;
      },
      &counts);
  return counts;
}

}  // namespace

const char* FileName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool FindLoadedLibraries(const char* beginning, Array<LoadedLibrary>* out) {
  Search search{beginning, out};
  dl_iterate_phdr(Visit, &search);
  return search.ok;
}

bool FindLibraryAt(const void* address, LoadedLibrary* out) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  Set(info.dli_fbase, info.dli_fname, out);
  return true;
}

uint64_t LoadCount() { return Counts().loads; }
uint64_t UnloadCount() { return Counts().unloads; }

}  // namespace xsched
