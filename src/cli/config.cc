// xsched config: shows settings and where they come from, and changes the server's configuration file. For
// queues, see queue_config.h.
#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/input_file.h"
#include "cli/json_text.h"
#include "cli/new_file.h"
#include "cli/policy_text.h"
#include "cli/queue_config.h"
#include "cli/server_session.h"
#include "cli/variables.h"
#include "cli/warn.h"
#include "sched/core/policy.h"
#include "server/options.h"
#include "server/policy_names.h"

namespace xsched::cli {
namespace {

using nlohmann::json;

// xserver(8) explains them.
std::vector<std::string> Keys() {
  return {"socket",       "mode",      "group",    "admin_group",       "policy",
          "timeslice_us", "k",         "grace_us", "process_grace_us",  "idle_exit",
          "history",      "log_level", "metrics",  "metrics_per_queue", "metrics_group",
          "tenants"};
}

struct ConfigOptions {
  bool as_json = false;
  bool system = false;
  std::string key;
  std::string value;
};

// Null: it has no JSON object. Throws CommandError if it is there and cannot be read.
json ObjectIn(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return json::object();
  std::ifstream file = OpenInput(path);
  json config = json::parse(file, nullptr, false);
  return config.is_object() ? config : json();
}

json ReadFile(const std::string& path) {
  json config = ObjectIn(path);
  if (config.is_null())
    throw CommandError(kExitFailed, fmt::format("{} is not a JSON object: correct or remove it", path));
  return config;
}

// Null: it has none, or cannot be read.
json ObjectOrNull(const std::string& path) try { return ObjectIn(path); } catch (const CommandError&) {
  return {};
}

void CheckKey(const std::string& key) {
  const std::vector<std::string> keys = Keys();
  if (std::ranges::find(keys, key) != keys.end()) return;
  throw CommandError(kExitUsage,
                     fmt::format("there is no setting {} (there are {})", key, server::Listed(keys, "and")));
}

// The state of the running server, or why it is not known.
json ServerState() {
  try {
    ServerSession server;
    ipc::Status status = server.Status();
    json state = {{"running", true}, {"policy", PolicyText(status)}};
    ipc::ForEachShown(status, [&state](const char* name, const auto& value) { state[name] = value; });
    return state;
  } catch (const CommandError& error) {
    return {{"running", false}, {"reason", error.what()}};
  }
}

json Collect() {
  std::vector<std::string> problems = EnvironmentProblems(environ);
  json all = {{"socket", ipc::FindServerSocket().text}, {"server", ServerState()}};
  for (bool system : {true, false}) {
    std::string path = server::ConfigPath(system);
    all["files"][path] = ObjectOrNull(path);
    if (const std::string problem = server::ProblemOfConfig(path); !problem.empty())
      problems.push_back("no server starts with this file: " + problem);
  }
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    const char* value = std::getenv(variable.name);
    json& entry = all["environment"][variable.name];
    entry["meaning"] = variable.meaning;
    entry["value"] = value == nullptr ? json() : json(value);
    std::string problem = value == nullptr ? "" : ProblemOf(variable, value, environ);
    entry["valid"] = problem.empty();
    if (!problem.empty()) entry["problem"] = problem;
  }
  all["problems"] = problems;
  return all;
}

void Show(const ConfigOptions& options) {
  json all = Collect();
  if (options.as_json) {
    fmt::print("{}\n", JsonText(all));
    return;
  }
  const json& server = all["server"];
  fmt::print("socket  {}\n", all["socket"].get<std::string>());
  if (server["running"].get<bool>()) {
    fmt::print("server  {} (pid {}), policy {}, timeslice {} µs\n", server["version"].get<std::string>(),
               server["pid"].get<int>(), server["policy"].get<std::string>(),
               server["timeslice_us"].get<int64_t>());
  } else {
    fmt::print("server  {}\n", server["reason"].get<std::string>());
  }
  for (const auto& [path, config] : all["files"].items()) {
    fmt::print("file    {}: {}\n", path,
               config.is_null() ? "no JSON object that can be read"
               : config.empty() ? "nothing set"
                                : JsonText(config, -1));
  }
  fmt::print("environment\n");
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    const char* value = std::getenv(variable.name);
    fmt::print("  {:<31} {:<8} {}\n", variable.name, value == nullptr ? "-" : value, variable.meaning);
  }
  for (const json& problem : all["problems"]) fmt::print("problem: {}\n", problem.get<std::string>());
}

void Get(const ConfigOptions& options) {
  CheckKey(options.key);
  std::string path = server::ConfigPath(options.system);
  json config = ReadFile(path);
  if (!config.contains(options.key))
    throw CommandError(kExitFailed, fmt::format("{} is not set in {}", options.key, path));
  const json& value = config[options.key];
  fmt::print("{}\n", value.is_string() ? value.get<std::string>() : JsonText(value, -1));
}

json ValueOf(const std::string& key, const std::string& text) {
  // A server may start in any folder.
  if ((key == "socket" || key == "tenants") && !text.starts_with('/'))
    throw CommandError(kExitUsage, fmt::format("{} must be a path that begins with /, not {}", key, text));
  if (key == "metrics_per_queue") {
    if (text != "true" && text != "false")
      throw CommandError(kExitUsage, fmt::format("{} must be true or false, not {}", key, text));
    return text == "true";
  }
  if (key != "timeslice_us" && key != "k" && key != "grace_us" && key != "process_grace_us" &&
      key != "idle_exit" && key != "history")
    return text;
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw CommandError(kExitUsage, fmt::format("{} must be a whole number, not {}", key, text));
  return number;
}

// Throws if a server would not start with this file.
void CheckAsServer(const std::string& file, const std::string& key) {
  std::string problem = server::ProblemOfConfig(file, key);
  if (problem.empty()) return;
  if (problem.starts_with(file + ": ")) problem.erase(0, file.size() + 2);  // it is a temporary file
  throw CommandError(kExitUsage, fmt::format("{}; nothing was changed", problem));
}

// What is read and replaced if there is a link, of this user or of root: another one's could lead to any
// file.
std::string WhereItIs(const std::string& path) {
  struct stat link {};
  const bool is_link = lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
  if (is_link && link.st_uid != geteuid() && link.st_uid != 0)
    throw CommandError(kExitNotPermitted, fmt::format("{} is a link of another user", path));
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

// `path` with another text, not in place yet.
NewFile Changed(const std::string& path, const json& config, bool system) try {
  // The user of the system's server must be able to read the file, also in a folder that is made here.
  if (system) umask(022);
  return {path, JsonText(config) + "\n", NewFile::Access::kAsBefore};
} catch (const CommandError& error) {
  if (!system || error.code != kExitNotPermitted || geteuid() == 0) throw;
  throw CommandError(error.code, fmt::format("{} (only root may)", error.what()));
}

void Set(const ConfigOptions& options) {
  CheckKey(options.key);
  const std::string path = WhereItIs(server::ConfigPath(options.system));
  json config = ReadFile(path);
  config[options.key] = ValueOf(options.key, options.value);
  NewFile file = Changed(path, config, options.system);
  CheckAsServer(file.path(), options.key);
  file.PutInPlace();
  fmt::print("{}: {} = {} (read when the server starts)\n", path, options.key, options.value);
  if (options.system && options.key == "admin_group")
    Warn("the unit xserver.service has --admin-group, which takes precedence: systemctl edit xserver");
}

}  // namespace

void AddConfig(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App* config =
      app.add_subcommand("config", "show the configuration, or change the server's or a queue's");
  config->require_subcommand(0, 1);
  config->add_flag("--json", options->as_json, "as JSON");
  CLI::App* get = config->add_subcommand("get", "print a setting of the server's configuration file");
  const std::string keys = server::Listed(Keys(), "and");
  get->add_option("key", options->key, keys)->required();
  get->add_flag("--system", options->system, "of the system's server");
  get->callback([options] { Get(*options); });
  CLI::App* set = config->add_subcommand("set", "change a setting of the server's configuration file");
  set->add_option("key", options->key, keys)->required();
  set->add_option("value", options->value)->required();
  set->add_flag("--system", options->system, "of the system's server");
  set->callback([options] { Set(*options); });
  config->callback([config, options, set_queue_config = AddQueueConfig(*config)] {
    if (config->get_subcommands().empty() && !set_queue_config()) Show(*options);
  });
}

}  // namespace xsched::cli
