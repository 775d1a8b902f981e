#include "cli/cdi/installed.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/doctor/elf_file.h"
#include "cli/exit_codes.h"
#include "cli/json_text.h"
#include "cli/new_file.h"
#include "cli/platform.h"
#include "cli/reach.h"
#include "cli/warn.h"
#include "ipc/client.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

bool IsOurs(const std::string& library) {
  auto is_hal = [&](const Platform* platform) {
    return library.starts_with(fmt::format("libhal{}.so", platform->id));
  };
  return library.starts_with("libpreempt.so") || std::ranges::any_of(Platforms(), is_hal);
}

// `library`, and all of ours that it needs.
void AddWithNeeded(const std::string& library, std::vector<std::string>& libraries) {
  if (std::ranges::count(libraries, library) != 0) return;
  libraries.push_back(library);
  const std::optional<ElfFile> elf = ReadElf(library);
  if (!elf) throw CommandError(kExitFailed, fmt::format("{} is no library", library));
  for (const std::string& needed : elf->needed) {
    if (!IsOurs(needed)) continue;
    AddWithNeeded(fs::path(library).parent_path() / needed, libraries);
  }
}

// The system's server, unless XSCHED_SOCKET chooses another one.
std::string Socket() {
  const ipc::SocketChoice choice = ipc::ReadSocketChoice();
  std::string socket = (choice.is_chosen ? choice.chosen : ipc::SystemServerSocket()).text;
  const std::string folder = fs::path(socket).parent_path();
  struct stat status {};
  if (!socket.starts_with('/') || folder == "/")
    throw CommandError(kExitUsage, "XSCHED_SOCKET must be an absolute path, in a folder of its own");
  if (stat(folder.c_str(), &status) != 0) {
    Warn(fmt::format(
        "{} is not there yet: until a server makes it, engines cannot start containers with these devices",
        folder));
  } else if ((status.st_mode & S_IWOTH) != 0) {
    throw CommandError(kExitFailed, fmt::format("everybody may write to {}, which containers would see: the "
                                                "server's socket must be in a folder of its own",
                                                folder));
  }
  return socket;
}

std::vector<Shim> ShimsHere(const std::string& route, const PlatformFilter& is_wanted) {
  const FoundShims shims = FindShims(route, is_wanted);
  WarnOfOthers(shims);
  if (shims.found.empty())
    throw CommandError(kExitFailed,
                       "none of XSched's libraries for programs is installed beside this xsched");
  const bool preloads = std::ranges::any_of(
      shims.found, [&](const Shim& shim) { return shim.layers.empty() || route == "preload"; });
  if (preloads) {
    Warn(fmt::format(
        "programs of an image with a glibc before {} do not start with these devices: a library that "
        "needs this version is preloaded (docs/deploy/containers.md)",
        NeededGlibc()));
  }
  return shims.found;
}

}  // namespace

CdiSpecification InstalledSpecification(const std::string& kind, const std::string& route,
                                        const PlatformFilter& is_wanted) {
  CdiSpecification specification{.kind = "xsched.org/" + kind,
                                 .devices = {},
                                 .route = route,
                                 .shims = ShimsHere(route, is_wanted),
                                 .libraries = {},
                                 .socket = Socket()};
  for (const Shim& shim : specification.shims) AddWithNeeded(shim.path, specification.libraries);
  return specification;
}

void WriteSpecification(const CdiSpecification& specification, const std::string& path) {
  const std::string text = JsonText(CdiJson(specification)) + "\n";
  if (path.empty()) {
    fmt::print("{}", text);
    return;
  }
  NewFile file(path, text);
  file.PutInPlace();
}

}  // namespace xsched::cli
