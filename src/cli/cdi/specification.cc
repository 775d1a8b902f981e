#include "cli/cdi/specification.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The oldest version that has all that we use (names that begin with a digit), so that older engines take it.
constexpr char kVersion[] = "0.5.0";

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string InContainer(const std::string& library) {
  return fmt::format("{}/{}", kContainerLibraries, fs::path(library).filename().string());
}

ordered_json Mount(const std::string& host, const std::string& container, bool has_programs) {
  ordered_json options = {"ro", "nosuid", "nodev", "bind"};
  if (!has_programs) options.push_back("noexec");
  return {{"hostPath", host}, {"containerPath", container}, {"options", options}};
}

ordered_json Mounts(const CdiSpecification& specification) {
  ordered_json mounts = ordered_json::array();
  mounts.push_back(Mount(fs::path(specification.socket).parent_path(), kContainerSocketFolder, false));
  for (const std::string& library : specification.libraries)
    mounts.push_back(Mount(library, InContainer(library), true));
  return mounts;
}

// "NAME=VALUE", as `xsched run` sets them for a program that has no variables yet.
std::vector<std::string> EnvironmentOf(const CdiSpecification& specification, LaunchOptions launch) {
  launch.route = specification.route;
  std::vector<Shim> shims = specification.shims;
  for (Shim& shim : shims) shim.path = InContainer(shim.path);
  std::vector<std::string> environment;
  for (const Variable& variable : LaunchEnvironment(launch, shims, [](const auto&) { return std::string(); }))
    if (variable.value) environment.push_back(variable.name + "=" + *variable.value);
  return environment;
}

}  // namespace

ordered_json CdiJson(const CdiSpecification& specification) {
  const std::vector<std::string> common = EnvironmentOf(specification, {});
  ordered_json devices = ordered_json::array();
  for (const CdiDevice& device : specification.devices) {
    std::vector<std::string> own = EnvironmentOf(specification, device.launch);
    std::erase_if(own, [&](const std::string& entry) { return std::ranges::count(common, entry) != 0; });
    ordered_json edits = {{"env", own}};
    for (const std::string& file : device.files)
      edits["deviceNodes"].push_back({{"path", file}, {"permissions", "rw"}});
    devices.push_back({{"name", device.name}, {"containerEdits", edits}});
  }
  ordered_json environment = common;
  environment.push_back(fmt::format("XSCHED_SOCKET={}/{}", kContainerSocketFolder,
                                    fs::path(specification.socket).filename().string()));
  return {{"cdiVersion", kVersion},
          {"kind", specification.kind},
          {"devices", devices},
          {"containerEdits", {{"env", environment}, {"mounts", Mounts(specification)}}}};
}

std::string ProblemOfDeviceName(const std::string& name) {
  auto is_inner = [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  if (!name.empty() && IsAlphanumeric(name.front()) && IsAlphanumeric(name.back()) &&
      std::ranges::all_of(name, is_inner))
    return "";
  return fmt::format(
      "\"{}\" can name no device: it must have letters, digits, and between them also - _ and .", name);
}

bool HasHints(const CdiDevice& device) {
  const CdiSpecification none;
  return EnvironmentOf(none, device.launch).size() > EnvironmentOf(none, {}).size();
}

std::vector<CdiDevice> DefaultClasses() {
  std::vector<CdiDevice> classes;
  for (const auto& [name, priority] :
       {std::pair{"urgent", kUrgentPriority}, {"normal", 0}, {"batch", kBatchPriority}}) {
    classes.push_back({name, {}});
    classes.back().launch.priority = priority;
  }
  return classes;
}

std::vector<CdiDevice> Shares() {
  std::vector<CdiDevice> shares;
  for (int64_t percent = 1; percent <= 100; ++percent) {
    CdiDevice& share = shares.emplace_back(CdiDevice{std::to_string(percent), {}});
    share.launch.utilization = percent;
    share.launch.weight = percent;
  }
  return shares;
}

}  // namespace xsched::cli
