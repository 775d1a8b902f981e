// Can our libraries get into a program, as far as its file says? What is preloaded into a program of another
// C library, or of an older one than ours, ends it at its start.
#pragma once

#include <string>

#include "cli/doctor/elf_file.h"

namespace xsched::cli {

enum class Reach {
  kReached,
  kOtherMachine,  // 32-bit, or for another processor
  kStatic,        // has no loader, so nothing is loaded before it
  kMusl,          // another C library, which leaves out what it cannot find
  kOldGlibc       // ends programs for which something preloaded needs a newer one
};

Reach ReachOf(const ElfFile& elf);

// Of the program that runs in the end if `name` is started, which may be a script's interpreter. kReached
// where that cannot be told.
struct Target {
  std::string path;
  Reach reach = Reach::kReached;
};
Target TargetOf(const std::string& name);

// Why it is not reached, after the program's name: "is statically linked: …"; "": it is reached.
std::string WhyNotReached(Reach reach);

// Would what is preloaded end the program?
inline bool PreloadingKills(Reach reach) { return reach == Reach::kOldGlibc; }

// `library` as LD_PRELOAD names it: "$ORIGIN/../../…/path". glibc replaces $ORIGIN by the program's own
// folder, so this is the same file. musl does not: it finds no such file and goes on without, where it would
// end a program into which it had loaded a library of glibc. So children of a program are safe, whatever they
// are.
std::string ForPreloading(const std::string& library);

// LD_PRELOAD separates by spaces and by colons, and knows no way to quote them; OPENCL_LAYERS by colons.
inline bool CanBePreloaded(const std::string& path) { return path.find_first_of(" :") == std::string::npos; }
inline bool CanBeLayer(const std::string& path) { return path.find(':') == std::string::npos; }

}  // namespace xsched::cli
