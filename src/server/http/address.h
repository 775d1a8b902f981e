// Where HTTP is answered: at a port of this machine's own address, or at a Unix socket.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace xsched::server::http {

inline constexpr int kDefaultPort = 50000;  // as in XSched 1.2
inline constexpr int kDefaultMetricsPort = 9470;

// A number is a port of 127.0.0.1; a path (with a '/') is a Unix socket's. Nullopt: it is neither.
struct Address {
  int port = 0;
  std::string path;  // "": the port
};
std::optional<Address> ParseAddress(const std::string& text);
std::string TextOf(const Address& address);

// A socket that listens there and is closed by exec. `mode`: of a Unix socket's file. A file that a former
// one has left is replaced. Throws std::runtime_error.
int ListenAt(const Address& address, mode_t mode);
int ListenOnLoopback(int port);

}  // namespace xsched::server::http
