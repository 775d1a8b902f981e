#include "cli/doctor/examine_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/doctor/elf_file.h"
#include "cli/locations.h"
#include "cli/reach.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbout = "program";
constexpr int kMostInterpreters = 4;  // as the kernel

// What a program may use of the platforms, and how it is reached.
struct Library {
  const char* platform;
  const char* name;  // or its beginning
  const char* about;
  const char* how;
};
constexpr Library kLibraries[] = {
    {"OpenCL", "libOpenCL.so", "the OpenCL loader", "both routes reach it"},
    {"CUDA", "libcuda.so", "CUDA's driver", "preloading reaches it"},
    {"CUDA", "libcudart.so", "CUDA's runtime", "preloading reaches it"},
    {"HIP", "libamdhip64.so", "HIP's runtime", "preloading reaches it, or its dispatch table"},
};

// Does running it change whose rights the process has?
bool ChangesRights(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  return ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) ||
         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid());
}

// A loader of its own goes before the system's; it takes layers only if it knows them.
void ExamineOwnLoader(Report& report, const ElfFile& elf, const std::string& path) {
  std::vector<std::string> folders = elf.run_path;
  folders.push_back(fs::path(path).parent_path().string());
  for (const std::string& folder : folders) {
    std::string loader = folder + "/libOpenCL.so.1";
    // The system's own folder is no folder of the program's.
    if (!fs::exists(loader) || folder.starts_with("/usr/lib") || folder.starts_with("/lib")) continue;
    if (FileContains(loader, "OPENCL_LAYERS")) {
      report.Ok(kAbout, fmt::format("brings its own OpenCL loader, {}, which takes layers", loader));
    } else {
      report.Problem(kAbout,
                     fmt::format("brings its own OpenCL loader, {}, which takes no layers: use xsched "
                                 "run --route preload",
                                 loader));
    }
    return;
  }
}

// The platforms that the program is known to use. Which ones its libraries use, or a script, is not asked.
std::vector<std::string> ExamineUse(Report& report, const ElfFile& elf, const std::string& path) {
  std::vector<std::string> used;
  for (const Library& library : kLibraries) {
    auto is_it = [&](const std::string& needed) { return needed.starts_with(library.name); };
    const bool links = std::any_of(elf.needed.begin(), elf.needed.end(), is_it);
    // Statically linked runtimes do.
    if (!links && !FileContains(path, library.name)) continue;
    report.Ok(kAbout,
              fmt::format("{} {} {}: {}", path, links ? "links" : "names", library.about, library.how));
    used.push_back(library.platform);
  }
  if (used.empty()) {
    report.Ok(kAbout,
              fmt::format("{} itself names none of the platforms; if it or a library of its own opens "
                          "them, they are reached all the same",
                          path));
  }
  return used;
}

// An obstacle if none of the platforms that it uses works here.
void JudgeUse(Report& report, const std::string& path, const std::vector<std::string>& used,
              std::span<const Platform> platforms) {
  std::string problems;
  for (const Platform& platform : platforms) {
    if (std::find(used.begin(), used.end(), platform.name) == used.end()) continue;
    if (platform.problem.empty()) return;
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", platform.name, platform.problem);
  }
  if (!problems.empty())
    report.Obstacle(kAbout, fmt::format("{} uses what is not scheduled here: {}", path, problems));
}

void ExamineElf(Report& report, const ElfFile& elf, const std::string& path,
                std::span<const Platform> platforms) {
  if (const std::string why = WhyNotReached(ReachOf(elf)); !why.empty()) {
    report.Obstacle(kAbout, fmt::format("{} {}", path, why));
    return;
  }
  JudgeUse(report, path, ExamineUse(report, elf, path), platforms);
  ExamineOwnLoader(report, elf, path);
}

}  // namespace

void ExamineProgram(Report& report, const std::string& name, std::span<const Platform> platforms) {
  std::string wanted = name;
  for (int depth = 0; depth <= kMostInterpreters; ++depth) {
    std::optional<std::string> path = FindInPath(wanted);
    if (!path) {
      report.Obstacle(kAbout, fmt::format("{} is not there, or not executable", wanted));
      return;
    }
    std::optional<ElfFile> elf = ReadElf(*path);
    if (elf) {
      if (ChangesRights(*path)) {
        report.Problem(kAbout, fmt::format("{} runs with another's rights (setuid or setgid): preloading is "
                                           "ignored, and only that user's server is used",
                                           *path));
      }
      ExamineElf(report, *elf, *path, platforms);
      return;
    }
    std::optional<std::string> interpreter = InterpreterOf(*path);
    if (!interpreter) {
      report.Obstacle(kAbout, fmt::format("{} is neither a program nor a script with an interpreter", *path));
      return;
    }
    report.Note(kAbout, fmt::format("{} is a script, run by {}", *path, *interpreter));
    wanted = *interpreter;
  }
  report.Obstacle(kAbout, fmt::format("{}: scripts that run scripts, without end", name));
}

}  // namespace xsched::cli
