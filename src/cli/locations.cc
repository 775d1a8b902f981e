#include "cli/locations.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/install_dirs.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

fs::path OwnFolder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::optional<std::string> FirstThatExists(std::initializer_list<fs::path> candidates) {
  for (const fs::path& path : candidates) {
    std::error_code error;
    if (fs::exists(path, error)) return fs::weakly_canonical(path.parent_path(), error) / path.filename();
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FindLibrary(const std::string& name) {
  fs::path own = OwnFolder();
  return FirstThatExists({own / ".." / kLibDir / name, own / ".." / "lib" / name});
}

std::optional<std::string> FindProgram(const std::string& name) {
  fs::path own = OwnFolder();
  return FirstThatExists(
      {own / name, own / ".." / kLibexecDir / "xsched" / name, own / ".." / "sbin" / name});
}

std::optional<std::string> FindShared(const std::string& name) {
  return FirstThatExists({OwnFolder() / ".." / kDataDir / "xsched" / name});
}

std::optional<std::string> FindInPath(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? std::optional(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
  }
  return std::nullopt;
}

}  // namespace xsched::cli
