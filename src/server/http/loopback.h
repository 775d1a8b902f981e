// The address of the HTTP interface: this machine's own.
#pragma once

namespace xsched::server::http {

inline constexpr int kDefaultPort = 50000;  // as in XSched 1.2

// A socket that listens at 127.0.0.1 and is closed by exec. Throws std::runtime_error.
int ListenOnLoopback(int port);

}  // namespace xsched::server::http
