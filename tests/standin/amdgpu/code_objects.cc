#include "code_objects.h"

#include <elf.h>
#include <link.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace standin_amdgpu {
namespace {

using Bytes = std::span<const char>;

constexpr std::string_view kDescriptorSuffix = ".kd";

// The symbol at `address` of a code object that is linked for address 0.
std::optional<std::string> SymbolAt(Bytes file, uint64_t address) {
  if (file.size() < sizeof(Elf64_Ehdr)) return std::nullopt;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  if (header->e_shoff + uint64_t{header->e_shnum} * sizeof(Elf64_Shdr) > file.size()) return std::nullopt;
  const std::span sections(reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff),
                           header->e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const char* names = file.data() + sections[section.sh_link].sh_offset;
    const std::span symbols(reinterpret_cast<const Elf64_Sym*>(file.data() + section.sh_offset),
                            section.sh_size / sizeof(Elf64_Sym));
    for (const Elf64_Sym& symbol : symbols) {
      const std::string_view name = names + symbol.st_name;
      if (symbol.st_value == address && name.ends_with(kDescriptorSuffix)) return std::string(name);
    }
  }
  return std::nullopt;
}

// A code object's place: "memory://PID#offset=0x…&size=…", "file://PATH#offset=…&size=…", "file://PATH".
struct Place {
  std::string path;
  unsigned long offset = 0;
  unsigned long size = 0;
};

Place Parse(const std::string& name) {
  Place place;
  const size_t hash = name.find('#');
  place.path = name.substr(0, hash);
  if (hash != std::string::npos)
    std::sscanf(name.c_str() + hash, "#offset=%li&size=%li", &place.offset, &place.size);
  return place;
}

std::optional<std::string> SymbolIn(const Place& place, uint64_t address) {
  constexpr std::string_view kFile = "file://";
  if (!place.path.starts_with(kFile)) {
    return SymbolAt({reinterpret_cast<const char*>(place.offset), place.size}, address);
  }
  std::ifstream file(place.path.substr(kFile.size()), std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (place.offset > bytes.size()) return std::nullopt;
  return SymbolAt(Bytes(bytes).subspan(place.offset), address);
}

}  // namespace

std::string NameOfKernel(uint64_t r_debug, uint64_t descriptor) {
  if (r_debug == 0) return "";
  for (const link_map* map = reinterpret_cast<const struct r_debug*>(r_debug)->r_map; map != nullptr;
       map = map->l_next) {
    if (map->l_name == nullptr || descriptor < map->l_addr) continue;
    if (std::optional<std::string> symbol = SymbolIn(Parse(map->l_name), descriptor - map->l_addr)) {
      return symbol->substr(0, symbol->size() - kDescriptorSuffix.size());
    }
  }
  return "";
}

}  // namespace standin_amdgpu
