// Starts xserver-http beside this server.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "server/http/address.h"
#include "server/options.h"

namespace xsched::server::http {

enum class Serve { kEverything, kMetricsOnly };

// An xserver-http that was started.
struct Program {
  pid_t pid;
  std::string command;  // that starts it again, for a shell
};

// It ends when the calling thread's process ends. Call it before the process has other threads. Throws
// std::runtime_error: the address is taken, or the program is not installed.
Program StartHttp(const Options& options, const Address& address, Serve what, const std::string& socket);

// Takes those out that have ended, and says so in the log. They are not started again by themselves: what
// ends one may end the next.
void TakeEnded(std::vector<Program>& programs);

}  // namespace xsched::server::http
