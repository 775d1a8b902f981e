// Starts xserver-http beside this server.
#pragma once

#include <string>

#include "server/options.h"

namespace xsched::server::http {

// It ends when the calling thread's process ends. Call it before the process has other threads. Throws
// std::runtime_error: the port is taken, or the program is not installed.
void StartHttp(const Options& options, const std::string& socket);

}  // namespace xsched::server::http
