// Starts xserver-http beside this server.
#pragma once

#include <string>

#include "server/http/address.h"
#include "server/options.h"

namespace xsched::server::http {

enum class Serve { kEverything, kMetricsOnly };

// It ends when the calling thread's process ends. Call it before the process has other threads. Throws
// std::runtime_error: the address is taken, or the program is not installed.
void StartHttp(const Options& options, const Address& address, Serve what, const std::string& socket);

}  // namespace xsched::server::http
