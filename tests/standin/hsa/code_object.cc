#include "code_object.h"

#include <elf.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>

#include "agent.h"
#include "entry.h"
#include "memory.h"

namespace standin_hsa {
namespace {

constexpr uint32_t kNoteMetadata = 32;  // NT_AMDGPU_METADATA
constexpr std::string_view kDescriptorSuffix = ".kd";

struct Symbol {
  std::string name;
  bool is_kernel;
  uint64_t address;
  uint64_t size;
};

// How a kernel's descriptor begins.
struct Descriptor {
  uint32_t group_segment_size;
  uint32_t private_segment_size;
  uint32_t kernarg_segment_size;
};

struct Reader {
  const unsigned char* bytes;
  size_t size;
};

// Kernels of all executables that are loaded, by the address of their descriptors.
struct Kernels {
  std::mutex lock;
  std::map<uint64_t, KernelCode> by_descriptor;
};
Kernels& AllKernels() {
  static auto* const kernels = new Kernels;
  return *kernels;
}

class Executable {
 public:
  ~Executable() {
    {
      std::lock_guard guard(AllKernels().lock);
      for (const auto& symbol : symbols_) AllKernels().by_descriptor.erase(symbol->address);
    }
    for (void* image : images_) Free(image);
  }

  hsa_status_t Load(hsa_agent_t agent, const Reader& file, uint64_t* loaded_at) {
    const auto* header = At<Elf64_Ehdr>(file, 0, 1);
    if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
      return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
    const auto* segments = At<Elf64_Phdr>(file, header->e_phoff, header->e_phnum);
    const auto* sections = At<Elf64_Shdr>(file, header->e_shoff, header->e_shnum);
    if (segments == nullptr || sections == nullptr) return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
    uint64_t top = 0;
    for (uint16_t i = 0; i < header->e_phnum; ++i) {
      if (segments[i].p_type == PT_LOAD) top = std::max(top, segments[i].p_vaddr + segments[i].p_memsz);
    }
    auto* image = static_cast<unsigned char*>(AllocateOnGpu(agent, top));
    if (image == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    images_.push_back(image);
    std::map<std::string, std::vector<Argument>> arguments;
    for (uint16_t i = 0; i < header->e_phnum; ++i) {
      const Elf64_Phdr& segment = segments[i];
      const auto* bytes = At<unsigned char>(file, segment.p_offset, segment.p_filesz);
      if (bytes == nullptr) return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
      if (segment.p_type == PT_LOAD) std::memcpy(image + segment.p_vaddr, bytes, segment.p_filesz);
      if (segment.p_type == PT_NOTE) arguments.merge(MetadataIn({bytes, segment.p_filesz}));
    }
    for (uint16_t i = 0; i < header->e_shnum; ++i) {
      if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header->e_shnum) {
        AddSymbols(file, sections[i], sections[sections[i].sh_link], image, arguments);
      }
    }
    *loaded_at = reinterpret_cast<uint64_t>(image);
    return HSA_STATUS_SUCCESS;
  }
  const std::vector<std::unique_ptr<Symbol>>& symbols() const { return symbols_; }

 private:
  // Null: the file ends before.
  template <typename T>
  static const T* At(const Reader& file, uint64_t offset, uint64_t count) {
    if (offset > file.size || count > (file.size - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(file.bytes + offset);
  }
  // One note for each part that the linker has put together.
  static std::map<std::string, std::vector<Argument>> MetadataIn(std::span<const unsigned char> notes) {
    std::map<std::string, std::vector<Argument>> arguments;
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes.data(), sizeof note);
      const size_t begin = sizeof note + (note.n_namesz + 3) / 4 * 4, end = begin + note.n_descsz;
      if (end > notes.size()) break;
      if (note.n_type == kNoteMetadata)
        arguments.merge(ReadKernelArguments(notes.subspan(begin, note.n_descsz)));
      notes = notes.subspan(std::min(notes.size(), (end + 3) / 4 * 4));
    }
    return arguments;
  }
  void AddSymbols(const Reader& file, const Elf64_Shdr& table, const Elf64_Shdr& text, unsigned char* image,
                  const std::map<std::string, std::vector<Argument>>& arguments) {
    const uint64_t count = table.sh_size / sizeof(Elf64_Sym);
    const auto* entries = At<Elf64_Sym>(file, table.sh_offset, count);
    const auto* names = At<char>(file, text.sh_offset, text.sh_size);
    if (entries == nullptr || names == nullptr) return;
    for (uint64_t i = 0; i < count; ++i) {
      if (ELF64_ST_TYPE(entries[i].st_info) != STT_OBJECT || entries[i].st_name >= text.sh_size) continue;
      std::string name(names + entries[i].st_name,
                       strnlen(names + entries[i].st_name, text.sh_size - entries[i].st_name));
      const bool is_kernel = name.ends_with(kDescriptorSuffix);
      const uint64_t address = reinterpret_cast<uint64_t>(image) + entries[i].st_value;
      symbols_.push_back(std::make_unique<Symbol>(Symbol{name, is_kernel, address, entries[i].st_size}));
      if (!is_kernel) continue;
      KernelCode code{name.substr(0, name.size() - kDescriptorSuffix.size()), {}};
      if (auto it = arguments.find(name); it != arguments.end()) code.arguments = it->second;
      std::lock_guard guard(AllKernels().lock);
      AllKernels().by_descriptor[address] = std::move(code);
    }
  }

  std::vector<std::unique_ptr<Symbol>> symbols_;
  std::vector<void*> images_;
};

Executable* From(hsa_executable_t executable) { return reinterpret_cast<Executable*>(executable.handle); }
const Symbol* From(hsa_executable_symbol_t symbol) { return reinterpret_cast<const Symbol*>(symbol.handle); }

template <typename T>
hsa_status_t Answer(void* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  return HSA_STATUS_SUCCESS;
}

}  // namespace

std::optional<KernelCode> FindKernelCode(uint64_t descriptor) {
  std::lock_guard guard(AllKernels().lock);
  auto it = AllKernels().by_descriptor.find(descriptor);
  if (it == AllKernels().by_descriptor.end()) return std::nullopt;
  return it->second;
}

}  // namespace standin_hsa

using namespace standin_hsa;

hsa_status_t hsa_code_object_reader_create_from_memory(const void* bytes, size_t size,
                                                       hsa_code_object_reader_t* created) {
  HSA_ENTRY();
  created->handle = reinterpret_cast<uint64_t>(new Reader{static_cast<const unsigned char*>(bytes), size});
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) {
  HSA_ENTRY();
  delete reinterpret_cast<Reader*>(reader.handle);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_executable_create_alt(hsa_profile_t, hsa_default_float_rounding_mode_t, const char*,
                                       hsa_executable_t* created) {
  HSA_ENTRY();
  created->handle = reinterpret_cast<uint64_t>(new Executable);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_executable_destroy(hsa_executable_t executable) {
  HSA_ENTRY();
  delete From(executable);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t reader, const char*,
                                                   hsa_loaded_code_object_t* loaded) {
  HSA_ENTRY();
  uint64_t loaded_at = 0;
  hsa_status_t status = From(executable)->Load(agent, *reinterpret_cast<Reader*>(reader.handle), &loaded_at);
  if (loaded != nullptr) loaded->handle = loaded_at;
  return status;
}
hsa_status_t hsa_executable_freeze(hsa_executable_t, const char*) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_executable_agent_global_variable_define(hsa_executable_t, hsa_agent_t, const char*, void*) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char* name,
                                               const hsa_agent_t*, hsa_executable_symbol_t* found) {
  HSA_ENTRY();
  for (const auto& symbol : From(executable)->symbols()) {
    if (symbol->name != name) continue;
    found->handle = reinterpret_cast<uint64_t>(symbol.get());
    return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
}
hsa_status_t hsa_executable_iterate_symbols(hsa_executable_t executable,
                                            hsa_status_t (*callback)(hsa_executable_t,
                                                                     hsa_executable_symbol_t, void*),
                                            void* data) {
  HSA_ENTRY();
  for (const auto& symbol : From(executable)->symbols()) {
    hsa_status_t status = callback(executable, {reinterpret_cast<uint64_t>(symbol.get())}, data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t handle,
                                            hsa_executable_symbol_info_t attribute, void* value) {
  HSA_ENTRY();
  const Symbol& symbol = *From(handle);
  Descriptor descriptor{};
  if (symbol.is_kernel)
    std::memcpy(&descriptor, reinterpret_cast<const void*>(symbol.address), sizeof descriptor);
  switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
      return Answer(value, symbol.is_kernel ? HSA_SYMBOL_KIND_KERNEL : HSA_SYMBOL_KIND_VARIABLE);
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
      return Answer(value, static_cast<uint32_t>(symbol.name.size()));
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
      std::memcpy(value, symbol.name.data(), symbol.name.size());
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
      return Answer(value, symbol.address);
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
      return Answer(value, static_cast<uint32_t>(symbol.size));
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
      return Answer(value, descriptor.kernarg_segment_size);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
      return Answer<uint32_t>(value, 16);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
      return Answer(value, descriptor.group_segment_size);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
      return Answer(value, descriptor.private_segment_size);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
      return Answer(value, false);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}
