// Reads from an executable file how it finds its libraries. Runs nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace xsched::cli {

struct ElfFile {
  bool is_64_bit = true;
  int machine = 0;                    // the processor's number in elf.h
  bool has_loader = false;            // false: it is statically linked
  std::string loader;                 // its dynamic loader
  std::vector<std::string> needed;    // libraries that it links
  std::vector<std::string> run_path;  // folders that it looks in first, $ORIGIN replaced
};

// nullopt: the file cannot be read, or is not an ELF file. Damaged parts are left out.
std::optional<ElfFile> ReadElf(const std::string& path);

// The interpreter of a script, from its "#!" line. For `#!/usr/bin/env python3` it is python3. nullopt: there
// is no such line.
std::optional<std::string> InterpreterOf(const std::string& path);

// True if the file contains `text`.
bool FileContains(const std::string& path, const std::string& text);

}  // namespace xsched::cli
