// xsched cdi generate: writes a CDI specification, by which container engines give containers a class or a
// share.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/cdi/installed.h"
#include "cli/cdi/specification.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/hint_options.h"

namespace xsched::cli {
namespace {

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
  hints.set_help_flag();  // there is no help in a text
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

void Generate(const CdiOptions& options) {
  if (options.kind != "class" && !options.classes.empty())
    throw CommandError(kExitUsage, "--class goes with --kind class");
  std::vector<CdiDevice> devices = options.kind == "share" ? Shares() : Classes(options.classes);
  CdiSpecification specification = InstalledSpecification(options.kind, options.route);
  specification.devices = std::move(devices);
  // Engines that ordinary users run must be able to read the file, also in a folder that is made here.
  if (!options.output.empty()) umask(022);
  WriteSpecification(specification, options.output);
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
