// What the administrator asks for: command line over configuration file over defaults.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "sched/core/policy.h"

namespace xsched::server {

struct Options {
  bool system = false;  // listen for all users (default for root), not for one
  std::string socket;   // empty: the user's or the system's default path
  mode_t mode = 0600;   // 0666 for a system server: who connects sees and hints only their own queues
  std::string group;
  std::string admin_group;
  const sched::Policy* policy = nullptr;
  Duration timeslice = std::chrono::microseconds(TIMESLICE_DEFAULT);
  Duration grace = std::chrono::microseconds(200);
  std::optional<Duration> idle_exit;
  int ready_fd = -1;
  bool port_given = false;  // XSched 1.2 had one; ours is a Unix socket
  std::string log_level = "info";
};

// Exits with a message for usage errors, --help and --version. Throws std::runtime_error for a bad
// configuration file.
Options ParseOptions(int argc, char** argv);

// The configuration file of the system's and of the user's server.
std::string ConfigPath(bool system);

}  // namespace xsched::server
