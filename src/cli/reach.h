// Checks by a program's file whether our libraries can be preloaded into it. A program of another C library,
// or of an older glibc, would end at its start.
#pragma once

#include <string>

#include "cli/doctor/elf_file.h"

namespace xsched::cli {

enum class Reach {
  kReached,
  kOtherMachine,  // 32-bit, or for another processor
  kStatic,        // has no loader, so nothing can be preloaded
  kMusl,          // another C library; its loader ignores preloaded libraries that it cannot find
  kOldGlibc       // its loader ends the program if a preloaded library needs a newer glibc
};

Reach ReachOf(const ElfFile& elf);

// For the program that runs if `name` is started, which may be a script's interpreter. kReached if this is
// not known.
struct Target {
  std::string path;
  Reach reach = Reach::kReached;
};
Target TargetOf(const std::string& name);

// The oldest version of glibc into which our libraries can be loaded: "2.34".
std::string NeededGlibc();

// Why it is not reached, as text behind the program's name: "is statically linked: …". "": it is reached.
std::string WhyNotReached(Reach reach);

// True if preloading would end the program.
inline bool PreloadingKills(Reach reach) { return reach == Reach::kOldGlibc; }

// The name of `library` for LD_PRELOAD: "$ORIGIN/../../…/path". glibc replaces $ORIGIN by the program's own
// folder, so this names the file. musl does not replace it: it finds no such file and ignores it. With the
// plain path, musl would load the library, and that would end the program. So a scheduled program can start
// programs of any kind.
std::string ForPreloading(const std::string& library);

// LD_PRELOAD separates paths by spaces and colons, lists of layers by colons. Neither has a way to quote
// them.
inline bool CanBePreloaded(const std::string& path) { return path.find_first_of(" :") == std::string::npos; }
inline bool CanBeLayer(const std::string& path) { return path.find(':') == std::string::npos; }

}  // namespace xsched::cli
