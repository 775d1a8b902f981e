// The server's options. The command line takes precedence over the configuration file, and that over the
// defaults.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/http/address.h"
#include "server/limits.h"

namespace xsched::server {

struct Options {
  bool system = false;  // serve all users (default for root), not only this one
  std::string socket;   // empty: the user's or the system's default path
  mode_t mode = 0600;   // 0666 for a system server: users see and hint only their own queues
  std::string group;
  std::string admin_group;
  sched::PolicySetting policy = *sched::FindPolicy(sched::kDefaultPolicy);
  Duration timeslice = std::chrono::microseconds(TIMESLICE_DEFAULT);
  size_t at_a_time = 1;
  Duration grace = sched::SchedulerConfig{}.grace;
  Duration process_grace = sched::SchedulerConfig{}.process_grace;
  size_t history = kMaxHistoryOfUser;  // events of each user that are remembered (recording/history.h)
  std::optional<Duration> idle_exit;
  int ready_fd = -1;
  std::optional<int> http_port;          // XSched 1.2's interface, on 127.0.0.1 only
  std::optional<http::Address> metrics;  // for Prometheus
  std::string metrics_group;             // its members see the metrics of all users
  bool metrics_per_queue = false;        // there are series of single queues
  std::string log_level = "info";
  // The tenants' file, which is read again at SIGHUP. Empty: there are only users, and SIGHUP ends the
  // server.
  std::string tenants;
  bool tenants_must_exist = false;
};

// Exits with a message for usage errors (status 2), --help and --version. Throws std::runtime_error for a bad
// configuration file.
Options ParseOptions(int argc, char** argv);

// The configuration file of the system's and of the user's server.
std::string ConfigPath(bool system);

// "PATH: …": why no server starts with this configuration file. Empty: one does, or there is no such file.
// Also why, if the group or the tenants' file is missing that the value of `key` names.
std::string ProblemOfConfig(const std::string& path, const std::string& key = "");

}  // namespace xsched::server
