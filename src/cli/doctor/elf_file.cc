#include "cli/doctor/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path, std::ios::binary) {}

  // False: the file ends before that.
  template <typename T>
  bool Read(uint64_t offset, T& value) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(reinterpret_cast<char*>(&value), sizeof value);
    return static_cast<bool>(file_);
  }
  std::string ReadText(uint64_t offset) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    std::string text;
    std::getline(file_, text, '\0');
    return text;
  }

 private:
  std::ifstream file_;
};

constexpr int kMostEntries = 10'000;  // of a table; with more, the file is damaged

std::vector<Elf64_Phdr> Segments(Reader& reader, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!reader.Read(header.e_phoff + static_cast<uint64_t>(i) * sizeof segment, segment)) break;
    segments.push_back(segment);
  }
  return segments;
}

// The offset in the file of a memory address.
std::optional<uint64_t> FileOffset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

std::vector<std::string> SplitRunPath(const std::string& text, const std::string& origin) {
  std::vector<std::string> folders;
  std::istringstream parts(text);
  for (std::string folder; std::getline(parts, folder, ':');) {
    for (const std::string& name : {std::string("${ORIGIN}"), std::string("$ORIGIN")}) {
      if (size_t at = folder.find(name); at != std::string::npos) folder.replace(at, name.size(), origin);
    }
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

void ReadDynamic(Reader& reader, const std::vector<Elf64_Phdr>& segments, const Elf64_Phdr& dynamic,
                 const std::string& origin, ElfFile& elf) {
  std::vector<Elf64_Dyn> entries;
  std::optional<uint64_t> names;
  for (int i = 0; i < kMostEntries; ++i) {
    Elf64_Dyn entry;
    if (!reader.Read(dynamic.p_offset + static_cast<uint64_t>(i) * sizeof entry, entry)) break;
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) names = FileOffset(segments, entry.d_un.d_ptr);
    entries.push_back(entry);
  }
  if (!names) return;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NEEDED) elf.needed.push_back(reader.ReadText(*names + entry.d_un.d_val));
    if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH)
      elf.run_path = SplitRunPath(reader.ReadText(*names + entry.d_un.d_val), origin);
  }
}

}  // namespace

std::optional<ElfFile> ReadElf(const std::string& path) {
  Reader reader(path);
  unsigned char ident[EI_NIDENT];
  if (!reader.Read(0, ident) || memcmp(ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  ElfFile elf;
  elf.is_64_bit = ident[EI_CLASS] == ELFCLASS64;
  if (!elf.is_64_bit) return elf;
  Elf64_Ehdr header;
  if (!reader.Read(0, header) || header.e_phentsize != sizeof(Elf64_Phdr)) return elf;
  elf.machine = header.e_machine;
  std::error_code error;
  std::string origin = fs::weakly_canonical(path, error).parent_path().string();
  std::vector<Elf64_Phdr> segments = Segments(reader, header);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) {
      elf.has_loader = true;
      elf.loader = reader.ReadText(segment.p_offset);
    }
    if (segment.p_type == PT_DYNAMIC) ReadDynamic(reader, segments, segment, origin, elf);
  }
  return elf;
}

std::optional<std::string> InterpreterOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[2] = {};
  if (!file.read(magic, 2) || magic[0] != '#' || magic[1] != '!') return std::nullopt;
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::string interpreter;
  if (!(words >> interpreter)) return std::nullopt;
  if (fs::path(interpreter).filename() != "env") return interpreter;
  // env accepts options and assignments before the name.
  for (std::string word; words >> word;) {
    if (word[0] != '-' && word.find('=') == std::string::npos) return word;
  }
  return interpreter;
}

bool FileContains(const std::string& path, const std::string& text) {
  constexpr size_t kPart = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string seen;
  while (file) {
    // The text may begin in one part and end in the next.
    seen.erase(0, seen.size() - std::min(seen.size(), text.size()));
    const size_t kept = seen.size();
    seen.resize(kept + kPart);
    file.read(seen.data() + kept, kPart);
    seen.resize(kept + static_cast<size_t>(file.gcount()));
    if (seen.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace xsched::cli
