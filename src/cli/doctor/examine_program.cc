#include "cli/doctor/examine_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "cli/doctor/elf_file.h"
#include "cli/locations.h"
#include "cli/platform.h"
#include "cli/reach.h"

namespace xsched::cli {
namespace {

constexpr int kMostInterpreters = 4;  // the kernel's limit

// True if the program runs with other rights than its caller's (setuid, setgid).
bool ChangesRights(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  return ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) ||
         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid());
}

// The platforms that the program itself uses. Those that a script or the program's libraries use are not
// known.
std::vector<std::string> ExamineUse(Report& report, const ElfFile& elf, const std::string& path) {
  std::vector<std::string> used;
  for (const Platform* platform : PlatformsWithShim()) {
    for (const PlatformLibrary& library : platform->libraries) {
      auto is_it = [&](const std::string& needed) { return needed.starts_with(library.name); };
      const bool links = std::any_of(elf.needed.begin(), elf.needed.end(), is_it);
      // A statically linked runtime contains the name.
      if (!links && !FileContains(path, library.name)) continue;
      report.Ok(kAboutProgram,
                fmt::format("{} {} {}: {}", path, links ? "links" : "names", library.about, library.how));
      used.push_back(platform->name);
    }
  }
  if (used.empty()) {
    report.Ok(kAboutProgram,
              fmt::format("{} itself links no platform's library; if it or one of its libraries loads one at "
                          "run time, that is intercepted as well",
                          path));
  }
  return used;
}

// Reports an obstacle if none of the platforms that the program uses works here.
void JudgeUse(Report& report, const std::string& path, const std::vector<std::string>& used,
              std::span<const ExaminedPlatform> platforms) {
  std::string problems;
  for (const ExaminedPlatform& platform : platforms) {
    if (std::find(used.begin(), used.end(), platform.name) == used.end()) continue;
    if (platform.problem.empty()) return;
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", platform.name, platform.problem);
  }
  if (!problems.empty())
    report.Obstacle(kAboutProgram, fmt::format("{} uses what is not scheduled here: {}", path, problems));
}

void ExamineElf(Report& report, const ElfFile& elf, const std::string& path,
                std::span<const ExaminedPlatform> platforms) {
  if (const std::string why = WhyNotReached(ReachOf(elf)); !why.empty()) {
    report.Obstacle(kAboutProgram, fmt::format("{} {}", path, why));
    return;
  }
  JudgeUse(report, path, ExamineUse(report, elf, path), platforms);
  for (const Platform* platform : Platforms()) {
    if (platform->examine_program != nullptr) platform->examine_program(report, elf, path);
  }
}

}  // namespace

void ExamineProgram(Report& report, const std::string& name, std::span<const ExaminedPlatform> platforms) {
  std::string wanted = name;
  for (int depth = 0; depth <= kMostInterpreters; ++depth) {
    std::optional<std::string> path = FindInPath(wanted);
    if (!path) {
      report.Obstacle(kAboutProgram, fmt::format("{} is not there, or not executable", wanted));
      return;
    }
    std::optional<ElfFile> elf = ReadElf(*path);
    if (elf) {
      if (ChangesRights(*path)) {
        report.Problem(kAboutProgram,
                       fmt::format("{} runs with another's rights (setuid or setgid): preloading is "
                                   "ignored, and only that user's server is used",
                                   *path));
      }
      ExamineElf(report, *elf, *path, platforms);
      return;
    }
    std::optional<std::string> interpreter = InterpreterOf(*path);
    if (!interpreter) {
      report.Obstacle(kAboutProgram,
                      fmt::format("{} is neither a program nor a script with an interpreter", *path));
      return;
    }
    report.Note(kAboutProgram, fmt::format("{} is a script, run by {}", *path, *interpreter));
    wanted = *interpreter;
  }
  report.Obstacle(kAboutProgram, fmt::format("{}: scripts that run scripts, without end", name));
}

}  // namespace xsched::cli
