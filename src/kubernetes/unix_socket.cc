#include "kubernetes/unix_socket.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <stdexcept>

#include "base/fd.h"

namespace xsched::kubernetes {

bool IsServedAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error(path + " is too long for a socket");
  memcpy(address.sun_path, path.c_str(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace xsched::kubernetes
