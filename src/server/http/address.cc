#include "server/http/address.h"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <stdexcept>

#include "base/fd.h"

namespace xsched::server::http {
namespace {

[[noreturn]] void Fail(const Address& address, const char* why) {
  throw std::runtime_error(fmt::format("cannot listen at {}: {}", TextOf(address), why));
}

sockaddr_un UnixAddressOf(const Address& address) {
  sockaddr_un unix_address{};
  unix_address.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof unix_address.sun_path) Fail(address, "the path is too long");
  memcpy(unix_address.sun_path, address.path.c_str(), address.path.size());
  return unix_address;
}

void RemoveStaleSocket(const Address& address, const sockaddr_un& unix_address) {
  struct stat status {};
  if (lstat(unix_address.sun_path, &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) Fail(address, "there is a file that is not a socket");
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&unix_address), sizeof unix_address) == 0 ||
      errno != ECONNREFUSED)
    Fail(address, strerror(EADDRINUSE));
  unlink(unix_address.sun_path);
}

int ListenOnUnixSocket(const Address& address, mode_t mode) {
  const sockaddr_un unix_address = UnixAddressOf(address);
  RemoveStaleSocket(address, unix_address);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const mode_t former = umask(~mode & 0777);
  const int bound = bind(socket.get(), reinterpret_cast<const sockaddr*>(&unix_address), sizeof unix_address);
  const int error = errno;
  umask(former);
  if (bound != 0) Fail(address, strerror(error));
  if (listen(socket.get(), SOMAXCONN) != 0) Fail(address, strerror(errno));
  return socket.Release();
}

}  // namespace

std::optional<Address> ParseAddress(const std::string& text) {
  if (text.find('/') != std::string::npos) return Address{0, text};
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535)
    return std::nullopt;
  return Address{port, ""};
}

std::string TextOf(const Address& address) {
  return address.path.empty() ? fmt::format("127.0.0.1:{}", address.port) : address.path;
}

int ListenAt(const Address& address, mode_t mode) {
  return address.path.empty() ? ListenOnLoopback(address.port) : ListenOnUnixSocket(address, mode);
}

int ListenOnLoopback(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    Fail({port, ""}, strerror(errno));
  }
  return socket.Release();
}

}  // namespace xsched::server::http
