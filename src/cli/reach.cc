#include "cli/reach.h"

#include <elf.h>

#include <filesystem>

#include "cli/locations.h"

namespace xsched::cli {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#endif

// What our libraries need at most; tests/abi/check_library.py sees to that. glibc's loader has the names of
// the versions that it brings, this one among them since then.
constexpr const char* kNeededGlibc = "GLIBC_2.34";
constexpr int kMostInterpreters = 4;  // as the kernel
// More than any program is folders deep: above the root there is only the root.
constexpr int kDepth = 40;

}  // namespace

Reach ReachOf(const ElfFile& elf) {
  if (!elf.is_64_bit || elf.machine != kMachine) return Reach::kOtherMachine;
  if (!elf.has_loader) return Reach::kStatic;
  if (std::filesystem::path(elf.loader).filename().string().starts_with("ld-musl")) return Reach::kMusl;
  std::error_code error;
  // Without its loader the program does not start, and says so itself.
  if (!std::filesystem::exists(elf.loader, error)) return Reach::kReached;
  return FileContains(elf.loader, kNeededGlibc) ? Reach::kReached : Reach::kOldGlibc;
}

Target TargetOf(const std::string& name) {
  std::string wanted = name;
  for (int depth = 0; depth <= kMostInterpreters; ++depth) {
    const std::optional<std::string> path = FindInPath(wanted);
    if (!path) break;
    if (const std::optional<ElfFile> elf = ReadElf(*path)) return {*path, ReachOf(*elf)};
    const std::optional<std::string> interpreter = InterpreterOf(*path);
    if (!interpreter) break;
    wanted = *interpreter;
  }
  return {name, Reach::kReached};
}

std::string WhyNotReached(Reach reach) {
  switch (reach) {
    case Reach::kReached:
      return "";
    case Reach::kOtherMachine:
      return "is a 32-bit program, or one for another processor; XSched's libraries are not";
    case Reach::kStatic:
      return "is statically linked: nothing can be put before its calls";
    case Reach::kMusl:
      return "is a program of musl; XSched's libraries are of glibc";
    case Reach::kOldGlibc:
      return std::string("is a program of a C library before ") + kNeededGlibc +
             ", which XSched's libraries need";
  }
  return "";
}

std::string ForPreloading(const std::string& library) {
  if (!library.starts_with('/')) return library;
  std::string path = "$ORIGIN";
  for (int i = 0; i < kDepth; ++i) path += "/..";
  return path + library;
}

}  // namespace xsched::cli
