#include "server/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <stdexcept>

namespace xsched::server {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", what, strerror(errno)));
}

void MakeFolder(const std::string& socket_path) {
  std::filesystem::path folder = std::filesystem::path(socket_path).parent_path();
  if (folder.empty() || std::filesystem::exists(folder)) return;
  // 0755: who may connect is the socket's mode; a folder in /tmp that only its owner can write is trusted by
  // clients.
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    Fail(fmt::format("cannot make the folder {}", folder.string()));
}

UniqueFd TakeLock(const std::string& path) {
  std::string lock_path = path + ".lock";
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) Fail(fmt::format("cannot open {}", lock_path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) Fail(fmt::format("cannot lock {}", lock_path));
  throw AlreadyRunning(fmt::format("a server is running at {} already", path));
}

// The lock is ours, so what lies there should be left over from a server that was killed. But lock files get
// cleaned away, and paths get mistyped.
void RemoveStaleSocket(const sockaddr_un& address) {
  struct stat status {};
  if (lstat(address.sun_path, &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    throw std::runtime_error(fmt::format("{} is there already and is not a socket", address.sun_path));
  }
  UniqueFd probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EAGAIN) {
    throw AlreadyRunning(fmt::format("a server is running at {} already", address.sun_path));
  }
  unlink(address.sun_path);
}

}  // namespace

Listener::Listener(const std::string& path, mode_t mode, std::optional<gid_t> group) : path_(path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw std::runtime_error(
        fmt::format("the socket's path must have 1 to {} characters: {}", sizeof address.sun_path - 1, path));
  }
  memcpy(address.sun_path, path.c_str(), path.size());
  MakeFolder(path);
  lock_ = TakeLock(path);
  RemoveStaleSocket(address);
  socket_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) Fail("cannot make a socket");
  // Nobody may connect between bind and chmod.
  mode_t old_mask = umask(0177);
  int bound = bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  umask(old_mask);
  if (bound != 0) Fail(fmt::format("cannot listen at {}", path));
  if (group && chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    Fail(fmt::format("cannot give {} to group {}", path, *group));
  }
  if (chmod(path.c_str(), mode) != 0) Fail(fmt::format("cannot set the mode of {}", path));
  if (listen(socket_.get(), SOMAXCONN) != 0) Fail(fmt::format("cannot listen at {}", path));
  spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

Listener::~Listener() { unlink(path_.c_str()); }

UniqueFd Listener::Accept() {
  UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection || (errno != EMFILE && errno != ENFILE)) return connection;
  // Left alone, the connection would wait and wake us for ever.
  spare_.Reset();
  connection.Reset(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  connection.Reset();
  spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  spdlog::warn("out of file descriptors: turned a client away (raise the limit: ulimit -n, LimitNOFILE=)");
  return connection;
}

}  // namespace xsched::server
