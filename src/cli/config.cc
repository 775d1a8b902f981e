// xsched config: where settings come from, and what they are; changes the server's configuration file.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "ipc/client.h"
#include "server/options.h"

namespace xsched::cli {
namespace {

using nlohmann::json;

constexpr struct {
  const char* name;
  const char* meaning;
} kVariables[] = {
    {"XSCHED_SCHEDULER",
     "who schedules: GLB (the server), LCL (the process), APP (the program itself; default)"},
    {"XSCHED_POLICY", "HPF or UP: schedule in the process with this policy"},
    {"XSCHED_SOCKET", "the server's socket"},
    {"XSCHED_AUTO_XQUEUE", "ON: shims make an XQueue for every queue"},
    {"XSCHED_AUTO_XQUEUE_LEVEL", "1 … 3: preemption level"},
    {"XSCHED_AUTO_XQUEUE_THRESHOLD", "commands in flight at most (16)"},
    {"XSCHED_AUTO_XQUEUE_BATCH_SIZE", "commands let through at a time (8)"},
    {"XSCHED_AUTO_XQUEUE_PRIORITY", "-256 … 255 (0)"},
    {"XSCHED_AUTO_XQUEUE_UTILIZATION", "0 … 100 % (100)"},
    {"XSCHED_AUTO_XQUEUE_TIMESLICE", "µs, 100 … 10000000"},
    {"XSCHED_AUTO_XQUEUE_DEADLINE", "µs"},
    {"XSCHED_AUTO_XQUEUE_LAXITY", "µs"},
    {"XSCHED_PREEMPT_LATENCY_US", "what is in flight should finish within this (2000)"},
    {"XSCHED_OPENCL_LIB", "the OpenCL library of queues that no shim saw"},
    {"XSCHED_LOG", "off, error, warn (default), info, debug"},
    {"OPENCL_LAYERS", "OpenCL layers, the shim among them"},
    {"LD_PRELOAD", "preloaded libraries"},
};

constexpr const char* kKeys[] = {"socket", "mode",         "group",   "admin_group",
                                 "policy", "timeslice_us", "grace_us"};

struct ConfigOptions {
  bool as_json = false;
  bool system = false;
  std::string key;
  std::string value;
};

json ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return json::object();
  json config = json::parse(file, nullptr, false);
  if (!config.is_object()) throw CommandError(kExitFailed, fmt::format("{} is not a JSON object", path));
  return config;
}

void CheckKey(const std::string& key) {
  for (const char* known : kKeys) {
    if (key == known) return;
  }
  throw CommandError(kExitUsage, fmt::format("there is no setting {}", key));
}

void Show(const ConfigOptions& options) {
  json shown;
  shown["socket"] = ipc::FindServerSocket().text;
  for (bool system : {true, false}) {
    std::string path = server::ConfigPath(system);
    shown["files"][path] = ReadFile(path);
  }
  shown["environment"] = json::object();
  for (const auto& variable : kVariables) {
    if (const char* value = std::getenv(variable.name)) shown["environment"][variable.name] = value;
  }
  if (options.as_json) {
    fmt::print("{}\n", shown.dump(2));
    return;
  }
  fmt::print("server's socket: {}\n", shown["socket"].get<std::string>());
  for (const auto& [path, config] : shown["files"].items()) {
    fmt::print("{}: {}\n", path, config.empty() ? "nothing set" : config.dump());
  }
  fmt::print("environment:\n");
  for (const auto& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    fmt::print("  {:<32} {:<10} {}\n", variable.name, value == nullptr ? "-" : value, variable.meaning);
  }
}

void Get(const ConfigOptions& options) {
  CheckKey(options.key);
  json config = ReadFile(server::ConfigPath(options.system));
  if (!config.contains(options.key))
    throw CommandError(kExitFailed, fmt::format("{} is not set", options.key));
  const json& value = config[options.key];
  fmt::print("{}\n", value.is_string() ? value.get<std::string>() : value.dump());
}

void Set(const ConfigOptions& options) {
  CheckKey(options.key);
  std::string path = server::ConfigPath(options.system);
  json config = ReadFile(path);
  bool number = options.key == "timeslice_us" || options.key == "grace_us";
  if (number) {
    char* end = nullptr;
    long long value = std::strtoll(options.value.c_str(), &end, 10);
    if (options.value.empty() || *end != '\0') {
      throw CommandError(kExitUsage, fmt::format("{} must be a whole number", options.key));
    }
    config[options.key] = value;
  } else {
    config[options.key] = options.value;
  }
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::ofstream file(path);
  file << config.dump(2) << "\n";
  file.close();
  if (!file) throw CommandError(kExitNotPermitted, fmt::format("cannot write {}", path));
  fmt::print("{}: {} = {} (read when the server starts)\n", path, options.key, options.value);
}

}  // namespace

void AddConfig(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App* config = app.add_subcommand("config", "show the configuration, or change the server's");
  config->require_subcommand(0, 1);
  config->add_flag("--json", options->as_json, "as JSON");
  CLI::App* get = config->add_subcommand("get", "print a setting of the server's configuration file");
  get->add_option("key", options->key)->required();
  get->add_flag("--system", options->system, "of the system's server");
  get->callback([options] { Get(*options); });
  CLI::App* set = config->add_subcommand("set", "change a setting of the server's configuration file");
  set->add_option("key", options->key)->required();
  set->add_option("value", options->value)->required();
  set->add_flag("--system", options->system, "of the system's server");
  set->callback([options] { Set(*options); });
  config->callback([config, options] {
    if (config->get_subcommands().empty()) Show(*options);
  });
}

}  // namespace xsched::cli
