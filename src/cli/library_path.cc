#include "cli/library_path.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/locations.h"

namespace xsched::cli {
namespace {

// Every installation has it, those of XSched 1.2 too.
constexpr const char* kLibraryOfAll = "libpreempt.so";

}  // namespace

LibraryPath ReadLibraryPath(const std::string& folders, const std::string& ours) {
  namespace fs = std::filesystem;
  LibraryPath path;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (folder.empty()) continue;
    const fs::path library = fs::path(folder) / kLibraryOfAll;
    std::error_code error;
    if (!fs::exists(library, error)) continue;
    if (!ours.empty() && fs::equivalent(library, ours, error)) {
      path.has_ours = true;
    } else {
      path.others.push_back(folder);
    }
  }
  return path;
}

LibraryPath ReadLibraryPath() {
  const char* folders = std::getenv("LD_LIBRARY_PATH");
  return ReadLibraryPath(folders == nullptr ? "" : folders, FindLibrary(kLibraryOfAll).value_or(""));
}

std::string ProblemOfOther(const std::string& folder) {
  return fmt::format(
      "LD_LIBRARY_PATH has {}, where another XSched is: programs may load its libraries instead of the "
      "drivers. Take that folder out",
      folder);
}

}  // namespace xsched::cli
