// xsched cdi generate: writes a CDI specification, by which container engines give containers a class or a
// share.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/cdi/specification.h"
#include "cli/commands.h"
#include "cli/doctor/elf_file.h"
#include "cli/exit_codes.h"
#include "cli/hint_options.h"
#include "cli/json_text.h"
#include "cli/locations.h"
#include "cli/new_file.h"
#include "cli/platform.h"
#include "cli/reach.h"
#include "cli/shims.h"
#include "cli/warn.h"
#include "ipc/client.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

struct CdiOptions {
  std::string kind = "class";
  std::vector<std::string> classes;
  std::string route = "layer";
  std::string output;
};

// "NAME [OPTION…]", with the options of hints that `xsched run` has.
CdiDevice ReadClass(const std::string& text) {
  const size_t end = std::min(text.find(' '), text.size());
  CdiDevice device{text.substr(0, end), {}};
  const std::string problem = ProblemOfDeviceName(device.name);
  if (!problem.empty()) throw CommandError(kExitUsage, fmt::format("--class: {}", problem));
  CLI::App hints;
  AddHintOptions(hints, device.launch);
  try {
    hints.parse(text.substr(end));
  } catch (const CLI::ParseError& error) {
    throw CommandError(kExitUsage, fmt::format("--class {}: {}", device.name, error.what()));
  }
  CheckHintOptions(device.launch);
  if (!HasHints(device))
    throw CommandError(kExitUsage,
                       fmt::format("--class {}: it needs a hint, such as --priority 5", device.name));
  return device;
}

std::vector<CdiDevice> Classes(const std::vector<std::string>& texts) {
  std::vector<CdiDevice> classes = DefaultClasses();
  for (const std::string& text : texts) {
    CdiDevice device = ReadClass(text);
    const auto same = std::ranges::find(classes, device.name, &CdiDevice::name);
    if (same != classes.end()) {
      *same = std::move(device);
    } else {
      classes.push_back(std::move(device));
    }
  }
  return classes;
}

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

std::vector<Shim> ShimsHere(const std::string& route) {
  const FoundShims shims = FindShims(route);
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

void Generate(const CdiOptions& options) {
  if (options.kind != "class" && !options.classes.empty())
    throw CommandError(kExitUsage, "--class goes with --kind class");
  CdiSpecification specification{.kind = "xsched.org/" + options.kind,
                                 .devices = options.kind == "share" ? Shares() : Classes(options.classes),
                                 .route = options.route,
                                 .shims = ShimsHere(options.route),
                                 .libraries = {},
                                 .socket = Socket()};
  for (const Shim& shim : specification.shims) AddWithNeeded(shim.path, specification.libraries);
  const std::string text = JsonText(CdiJson(specification)) + "\n";
  if (options.output.empty()) {
    fmt::print("{}", text);
    return;
  }
  NewFile file(options.output, text);
  file.PutInPlace();
}

}  // namespace

void AddCdi(CLI::App& app) {
  auto options = std::make_shared<CdiOptions>();
  CLI::App* cdi =
      app.add_subcommand("cdi", "give containers a class or a share, by the Container Device Interface");
  cdi->require_subcommand(1);
  CLI::App* generate = cdi->add_subcommand(
      "generate", "write a CDI specification, for an engine's --device xsched.org/class=urgent");
  generate
      ->add_option("--kind", options->kind,
                   "class: urgent, normal and batch; share: 1 to 100, percent of a device (default: class)")
      ->check(CLI::IsMember({"class", "share"}));
  generate
      ->add_option("--class", options->classes,
                   "one more class, or another one of this name, with hints as in xsched run: \"serve "
                   "--priority 5 --latency-target-us 5000\"")
      ->allow_extra_args(false);
  generate->add_option("--route", options->route, "as in xsched run")
      ->check(CLI::IsMember({"layer", "preload"}));
  generate
      ->add_option("--output,-o", options->output,
                   "a file, such as /etc/cdi/xsched-class.json, in place of standard output")
      ->type_name("FILE");
  generate->callback([options] { Generate(*options); });
}

}  // namespace xsched::cli
