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

// The newest version that our libraries need (XSCHED_GLIBC in CMake); tests/abi/check_library.py and
// scripts/elf_needs.py check it. glibc contains the names of all versions that it supports.
constexpr const char* kNeededGlibc = "GLIBC_" XSCHED_GLIBC;
constexpr int kMostInterpreters = 4;  // the kernel's limit
// No program is in more nested folders than this. Further ".." stay at the root.
constexpr int kDepth = 40;

// The C library of a loader, which is beside it. The loader itself, which has the newer names as well, if it
// is not.
std::filesystem::path LibcOf(const std::filesystem::path& loader) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(loader, error);
  const std::filesystem::path libc = real.parent_path() / "libc.so.6";
  return std::filesystem::exists(libc, error) ? libc : loader;
}

}  // namespace

Reach ReachOf(const ElfFile& elf) {
  if (!elf.is_64_bit || elf.machine != kMachine) return Reach::kOtherMachine;
  if (!elf.has_loader) return Reach::kStatic;
  if (std::filesystem::path(elf.loader).filename().string().starts_with("ld-musl")) return Reach::kMusl;
  std::error_code error;
  // Without its loader the program does not start, and the system reports that.
  if (!std::filesystem::exists(elf.loader, error)) return Reach::kReached;
  return FileContains(LibcOf(elf.loader), kNeededGlibc) ? Reach::kReached : Reach::kOldGlibc;
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

std::string NeededGlibc() { return XSCHED_GLIBC; }

std::string WhyNotReached(Reach reach) {
  switch (reach) {
    case Reach::kReached:
      return "";
    case Reach::kOtherMachine:
      return "is a 32-bit program, or one for another processor; XSched's libraries are not";
    case Reach::kStatic:
      return "is statically linked: its calls cannot be intercepted";
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
