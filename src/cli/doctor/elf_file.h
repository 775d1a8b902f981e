// What an executable file says of how it finds its libraries. Reads the file; runs nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace xsched::cli {

struct ElfFile {
  bool is_64_bit = true;
  int machine = 0;                    // the processor, as elf.h numbers them
  bool has_loader = false;            // names a dynamic loader; if not, it is statically linked
  std::string loader;                 // that one
  std::vector<std::string> needed;    // libraries that it links
  std::vector<std::string> run_path;  // folders that it looks in first, $ORIGIN replaced
};

// nullopt: the file cannot be read, or is no ELF file. Damaged parts are left out.
std::optional<ElfFile> ReadElf(const std::string& path);

// The program that interprets a script ("#!" line; of `#!/usr/bin/env python3` python3); nullopt: it has no
// such line.
std::optional<std::string> InterpreterOf(const std::string& path);

// Does the file contain `text`?
bool FileContains(const std::string& path, const std::string& text);

}  // namespace xsched::cli
