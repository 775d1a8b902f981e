#include "server/service_manager.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace xsched::server {
namespace {

// The watchdog time if it is for this process, and not for a parent whose environment we inherited. Zero:
// none.
Duration WatchdogTime() {
  const char* pid = std::getenv("WATCHDOG_PID");
  const char* time_us = std::getenv("WATCHDOG_USEC");
  if (time_us == nullptr || (pid != nullptr && std::atoll(pid) != getpid())) return Duration::zero();
  return std::chrono::microseconds(std::clamp<long long>(std::atoll(time_us), 0, 1'000'000'000'000));
}

}  // namespace

ServiceManager::ServiceManager() {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
    return;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path, strlen(path));
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(path));
  socket_.Reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_ || connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    socket_.Reset();
    return;
  }
  Duration watchdog = WatchdogTime();
  if (watchdog == Duration::zero()) return;
  every_ = watchdog / 2;
  due_ = TimePoint{};  // with the first round
}

void ServiceManager::Notify(const char* state) const {
  if (socket_) send(socket_.get(), state, strlen(state), MSG_NOSIGNAL);
}

TimePoint ServiceManager::KeepAlive(TimePoint now) {
  if (now < due_) return due_;
  Notify("WATCHDOG=1");
  due_ = now + every_;
  return due_;
}

}  // namespace xsched::server
