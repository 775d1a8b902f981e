#include "server/options.h"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "ipc/client.h"
#include "server/access.h"
#include "server/empty_values.h"
#include "server/http/address.h"
#include "server/policy_names.h"
#include "server/tenants/tenants_file.h"
#include "server/version.h"

namespace xsched::server {
namespace {

using nlohmann::json;

mode_t ModeOrThrow(const std::string& text) {
  size_t used = 0;
  unsigned long mode = 0;
  try {
    mode = std::stoul(text, &used, 8);
  } catch (const std::exception&) {
  }
  if (text.empty() || used != text.size() || mode > 0777)
    throw std::runtime_error(fmt::format("mode must be an octal file mode up to 0777, not \"{}\"", text));
  return static_cast<mode_t>(mode);
}

Duration MicrosecondsOrThrow(const char* what, int64_t value, int64_t min, int64_t max) {
  if (value < min || value > max)
    throw std::runtime_error(fmt::format("{} must be from {} to {} µs", what, min, max));
  return std::chrono::microseconds(value);
}

Duration Timeslice(int64_t value) {
  return MicrosecondsOrThrow("timeslice_us", value, TIMESLICE_MIN, TIMESLICE_MAX);
}
size_t AtATime(int64_t value) {
  if (value < 1 || value > int64_t{sched::kMostAtATime})
    throw std::runtime_error(fmt::format("k must be from 1 to {}", sched::kMostAtATime));
  return static_cast<size_t>(value);
}
size_t HistoryOfUser(int64_t events) {
  if (events < 0 || events > int64_t{kMaxHistory})
    throw std::runtime_error(fmt::format("history must be from 0 to {}", kMaxHistory));
  return static_cast<size_t>(events);
}
Duration IdleExit(int64_t seconds) {
  if (seconds < 0 || seconds > 1'000'000) throw std::runtime_error("idle_exit must be from 0 to 1000000 s");
  return std::chrono::seconds(seconds);
}

http::Address AddressOrThrow(const std::string& text) {
  const std::optional<http::Address> address = http::ParseAddress(text);
  if (!address)
    throw std::runtime_error(fmt::format("metrics must be a port or a path with a /, not {}", text));
  return *address;
}

const std::string& LogLevelOrThrow(const std::string& name) {
  static constexpr const char* kLevels[] = {"off", "error", "warn", "info", "debug"};
  if (std::find(std::begin(kLevels), std::end(kLevels), name) == std::end(kLevels))
    throw std::runtime_error(fmt::format("log_level must be off, error, warn, info or debug, not {}", name));
  return name;
}

Duration Grace(const char* name, int64_t value) { return MicrosecondsOrThrow(name, value, 0, 1'000'000); }

// Of a setting in the file. Its value may be anything.
std::runtime_error WrongType(const std::string& key, const char* what, const json& value) {
  constexpr size_t kShown = 40;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  return std::runtime_error(fmt::format("{} must be {}, not {}", key, what, text));
}
std::string StringOf(const std::string& key, const json& value) {
  if (!value.is_string()) throw WrongType(key, "a text in quotation marks", value);
  return value.get<std::string>();
}
std::string PathOf(const std::string& key, const json& value) {
  std::string path = StringOf(key, value);
  if (path.empty()) throw std::runtime_error(fmt::format("{} must not be empty", key));
  return path;
}
bool BooleanOf(const std::string& key, const json& value) {
  if (!value.is_boolean()) throw WrongType(key, "true or false", value);
  return value.get<bool>();
}
int64_t NumberOf(const std::string& key, const json& value) {
  if (!value.is_number_integer()) throw WrongType(key, "a whole number", value);
  // The range is checked by whoever uses it.
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return INT64_MAX;
  return value.get<int64_t>();
}

void Apply(const json& config, Options& options) {
  for (const auto& [key, value] : config.items()) {
    if (key == "socket") {
      options.socket = PathOf(key, value);
    } else if (key == "mode") {
      options.mode = ModeOrThrow(StringOf(key, value));
    } else if (key == "group") {
      options.group = StringOf(key, value);
    } else if (key == "admin_group") {
      options.admin_group = StringOf(key, value);
    } else if (key == "policy") {
      options.policy = SettingOrThrow(StringOf(key, value));
    } else if (key == "timeslice_us") {
      options.timeslice = Timeslice(NumberOf(key, value));
    } else if (key == "k") {
      options.at_a_time = AtATime(NumberOf(key, value));
    } else if (key == "grace_us") {
      options.grace = Grace("grace_us", NumberOf(key, value));
    } else if (key == "process_grace_us") {
      options.process_grace = Grace("process_grace_us", NumberOf(key, value));
    } else if (key == "history") {
      options.history = HistoryOfUser(NumberOf(key, value));
    } else if (key == "idle_exit") {
      options.idle_exit = IdleExit(NumberOf(key, value));
    } else if (key == "metrics") {
      options.metrics = AddressOrThrow(value.is_string() ? StringOf(key, value) : value.dump());
    } else if (key == "metrics_group") {
      options.metrics_group = StringOf(key, value);
    } else if (key == "metrics_per_queue") {
      options.metrics_per_queue = BooleanOf(key, value);
    } else if (key == "tenants") {
      options.tenants = PathOf(key, value);
      options.tenants_must_exist = true;
    } else if (key == "log_level") {
      options.log_level = LogLevelOrThrow(StringOf(key, value));
    } else {
      throw std::runtime_error(fmt::format("there is no setting {}", key));
    }
  }
}

// "HPF (highest priority first …) or UP (…)".
std::string PoliciesExplained() {
  std::vector<std::string> policies;
  for (sched::PolicyGetter policy : sched::Policies()) {
    const sched::PolicyInfo& info = policy().info();
    policies.push_back(fmt::format("{} ({})", info.name, info.summary));
  }
  return fmt::format("{} (default {})", Listed(policies, "or"), sched::PolicyName(sched::kDefaultPolicy));
}

void ReadConfig(const std::string& path, bool must_exist, Options& options) {
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    const int error = errno;
    // Without settings that are there, but not for its user, a server could let in whom they keep out.
    if (must_exist || access(path.c_str(), F_OK) == 0)
      throw std::runtime_error(fmt::format("cannot read {}: {}", path, strerror(error)));
    return;
  }
  try {
    json config = json::parse(file);
    if (!config.is_object()) throw std::runtime_error("it must be one JSON object");
    Apply(config, options);
  } catch (const json::parse_error& error) {
    // Its text begins with the library's name of the error: "[json.exception.parse_error.101] parse error …".
    const std::string text = error.what();
    const size_t begin = text.find("] ");
    throw std::runtime_error(
        fmt::format("{}: it is not JSON: {}", path, text.substr(begin == std::string::npos ? 0 : begin + 2)));
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
  }
}

// What a server with these options does not find when it starts; "": nothing. Throws std::runtime_error.
// Groups and files may come later than the settings that name them. So only what is being set must be there.
std::string ProblemOfName(const Options& options, const std::string& key) {
  if (key == "group") FindGroup(options.group);
  if (key == "admin_group") FindGroup(options.admin_group);
  if (key == "metrics_group") FindGroup(options.metrics_group);
  if (key != "tenants") return "";
  const bool is_hidden = access(options.tenants.c_str(), R_OK) != 0 && errno == EACCES;
  if (!options.tenants_must_exist || is_hidden) return "";
  const Result<TenantRules> rules = ReadTenantRules(options.tenants, /*must_exist=*/true);
  return rules ? "" : rules.error().text();
}

}  // namespace

std::string ConfigPath(bool system) {
  if (system) return "/etc/xsched/xserver.json";
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && folder[0] == '/') {
    return fmt::format("{}/xsched/xserver.json", folder);
  }
  const char* home = std::getenv("HOME");
  return fmt::format("{}/.config/xsched/xserver.json", home == nullptr ? "" : home);
}

std::string ProblemOfConfig(const std::string& path, const std::string& key) try {
  // The system's server is another user, who may be let in where this one is not.
  if (path == ConfigPath(/*system=*/true) && access(path.c_str(), R_OK) != 0) return "";
  Options options;
  ReadConfig(path, /*must_exist=*/false, options);
  return ProblemOfName(options, key);
} catch (const std::exception& error) {
  return error.what();
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  bool user = false;
  std::string config;
  std::string policy;
  std::string positional_policy;
  std::string mode;
  std::string by;
  std::optional<int64_t> timeslice_us;
  std::optional<int64_t> at_a_time;
  std::optional<int64_t> grace_us;
  std::optional<int64_t> process_grace_us;
  std::optional<int64_t> history;
  std::optional<int64_t> idle_exit_s;
  std::string socket;
  std::string group;
  std::string admin_group;
  std::string metrics;
  std::string metrics_group;
  bool metrics_per_queue = false;
  std::string log_level;
  std::string tenants;

  CLI::App app("XSched's server: schedules the queues of all processes that connect to it");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("xserver: {} (see xserver --help)\n", error.what());
  });
  app.set_version_flag("--version", fmt::format("xserver {}", kVersion));
  auto* positional = app.add_option("POLICY", positional_policy, PoliciesExplained());
  app.add_option("PORT", options.http_port, "as --http")->check(CLI::Range(1, 65535));
  auto* system_flag = app.add_flag("--system", options.system, "serve all users (default for root)");
  app.add_flag("--user", user, "serve this user only")->excludes(system_flag);
  app.add_option("--socket", socket, "listen here");
  app.add_option("--mode", mode, "the socket's file mode, octal (default 0600; with --system 0666)");
  app.add_option("--group", group, "the socket's group");
  app.add_option("--admin-group", admin_group, "its members may set the policy and hint all users' queues");
  app.add_option("--policy", policy, "as POLICY; or a chain of them, as HPF/CFS:process/KEDF")
      ->excludes(positional);
  app.add_option("--by", by, kByHelp);
  app.add_option(
      "--timeslice-us", timeslice_us,
      fmt::format("timeslice ({}), also of turns on a GPU ({} to {} µs; default {})",
                  ReadBy(&sched::HintsRead::timeslice), TIMESLICE_MIN, TIMESLICE_MAX, TIMESLICE_DEFAULT));
  app.add_option(
      "--k", at_a_time,
      fmt::format("how many queues run at a time ({}; default 1)", ReadBy(&sched::HintsRead::at_a_time)));
  app.add_option("--grace-us", grace_us,
                 "how long a queue without work still counts as ready (0 to 1000000 µs; default 200)");
  app.add_option(
      "--process-grace-us", process_grace_us,
      "likewise, where only other processes wait for it on a GPU with time slices (0 to 1000000 µs; "
      "default 1000)");
  app.add_option("--config", config, "configuration file (JSON)");
  auto* http =
      app.add_option(
             "--http", options.http_port,
             fmt::format("also answer XSched 1.2's HTTP requests, at this port of 127.0.0.1 (default {})",
                         http::kDefaultPort))
          ->check(CLI::Range(1, 65535))
          ->expected(0, 1)
          ->default_str(std::to_string(http::kDefaultPort));
  auto* metrics_option =
      app.add_option(
             "--metrics", metrics,
             fmt::format("metrics for Prometheus, at this port of 127.0.0.1 (default {}) or this Unix "
                         "socket (a path)",
                         http::kDefaultMetricsPort))
          ->expected(0, 1)
          ->default_str(std::to_string(http::kDefaultMetricsPort));
  app.add_option("--metrics-group", metrics_group, "its members see the metrics of all users");
  app.add_flag("--metrics-per-queue", metrics_per_queue, "also series of single queues");
  app.add_option(
      "--tenants", tenants,
      fmt::format("file that says who has which share and rights (TOML; with --system {})", kTenantsPath));
  app.add_option(
      "--history", history,
      fmt::format("how many bursts, holds and waits of each user are remembered for xsched explain "
                  "and --last (0: none, to {}; default {})",
                  kMaxHistory, kMaxHistoryOfUser));
  app.add_option("--idle-exit", idle_exit_s,
                 "exit after so many seconds without a client (0 to 1000000; default: never)");
  app.add_option("--ready-fd", options.ready_fd, "write a byte to this descriptor when listening");
  app.add_option("--log-level", log_level, "off, error, warn, info or debug");
  RefuseEmptyValues(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }

  if (!user && !options.system) options.system = geteuid() == 0;
  if (options.system) options.mode = 0666;
  if (options.system) options.tenants = kTenantsPath;
  ReadConfig(config.empty() ? ConfigPath(options.system) : config, !config.empty(), options);
  try {
    if (!positional_policy.empty()) options.policy = SettingOrThrow(positional_policy);
    if (!policy.empty()) options.policy = SettingOrThrow(policy);
    if (!by.empty()) options.policy = SettingBy(options.policy, by);
    if (!socket.empty()) options.socket = socket;
    if (!mode.empty()) options.mode = ModeOrThrow(mode);
    if (!group.empty()) options.group = group;
    if (!admin_group.empty()) options.admin_group = admin_group;
    if (timeslice_us) options.timeslice = Timeslice(*timeslice_us);
    if (at_a_time) options.at_a_time = AtATime(*at_a_time);
    if (grace_us) options.grace = Grace("grace_us", *grace_us);
    if (process_grace_us) options.process_grace = Grace("process_grace_us", *process_grace_us);
    if (history) options.history = HistoryOfUser(*history);
    if (idle_exit_s) options.idle_exit = IdleExit(*idle_exit_s);
    if (!tenants.empty()) {
      options.tenants = tenants;
      options.tenants_must_exist = true;
    }
    if (!log_level.empty()) options.log_level = LogLevelOrThrow(log_level);
    if (http->count() != 0 && !options.http_port) throw std::runtime_error("--http must be a port");
    if (metrics_option->count() != 0) options.metrics = AddressOrThrow(metrics);
    if (!metrics_group.empty()) options.metrics_group = metrics_group;
    options.metrics_per_queue |= metrics_per_queue;
  } catch (const std::runtime_error& error) {
    app.exit(CLI::ValidationError(error.what()));  // prints it
    std::exit(2);
  }
  if (const char* chosen = std::getenv("XSCHED_SOCKET"); options.socket.empty() && chosen != nullptr) {
    options.socket = chosen;  // clients with the same environment try this path first
  }
  if (options.socket.empty()) {
    options.socket = (options.system ? ipc::SystemServerSocket() : ipc::UserServerSocket()).text;
  }
  return options;
}

}  // namespace xsched::server
