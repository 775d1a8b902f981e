#include "hal/hip/loaded_libraries.h"

#include <stdio.h>
#include <string.h>

namespace xsched::hip {
namespace {

constexpr char kName[] = "libamdhip64";

const char* FileName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
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
  // The dynamic linker has made it an address; a library that it is still mapping has an offset there.
  if (!named || strings < info.dlpi_addr) return nullptr;
  return reinterpret_cast<const char*>(strings) + name;
}

bool IsInstance(const dl_phdr_info& info) {
  if (strncmp(FileName(info.dlpi_name), kName, sizeof kName - 1) == 0) return true;
  const char* so_name = SoName(info);
  return so_name != nullptr && strncmp(so_name, kName, sizeof kName - 1) == 0;
}

struct Search {
  Array<LoadedLibrary>* out;
  bool ok = true;
};

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0' || !IsInstance(*info)) return 0;
  LoadedLibrary library{reinterpret_cast<const void*>(info->dlpi_addr), {}};
  snprintf(library.path, sizeof library.path, "%s", info->dlpi_name);
  search.ok = search.out->Push(library);
  return search.ok ? 0 : 1;
}

}  // namespace

bool FindLoadedInstances(Array<LoadedLibrary>* out) {
  Search search{out};
  dl_iterate_phdr(Visit, &search);
  return search.ok;
}

uint64_t LoadCount() {
  uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

}  // namespace xsched::hip
