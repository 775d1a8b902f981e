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

#include "ipc/client.h"
#include "server/fail.h"

namespace xsched::server {
namespace {

constexpr Duration kWarnEvery = std::chrono::seconds(1);

void MakeFolder(const std::string& socket_path) {
  std::filesystem::path folder = std::filesystem::path(socket_path).parent_path();
  if (folder.empty()) folder = ".";
  // 0755: every user may enter the folder. Which users may connect depends on the mode of the socket.
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    Fail(fmt::format("cannot make the folder {}", folder.string()));
  // In a folder of another user, our operations on a path might reach another file, and clients do not use
  // it.
  if (Result<> safe = ipc::CheckSocketFolder(folder.c_str()); !safe)
    throw std::runtime_error(safe.error().text());
}

UniqueFd TakeLock(const std::string& path) {
  std::string lock_path = path + ".lock";
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) Fail(fmt::format("cannot open {}", lock_path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) Fail(fmt::format("cannot lock {}", lock_path));
  throw AlreadyRunning(fmt::format("a server is running at {} already", path));
}

// We have the lock, so the file should be left over from a killed server. But lock files may be cleaned away,
// and paths may be mistyped.
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
  // The socket has its mode from the beginning. Nobody can connect before listen.
  mode_t old_mask = umask(~mode & 0777);
  int bound = bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  umask(old_mask);
  if (bound != 0) Fail(fmt::format("cannot listen at {}", path));
  if (group && fchownat(AT_FDCWD, path.c_str(), static_cast<uid_t>(-1), *group, AT_SYMLINK_NOFOLLOW) != 0) {
    Fail(fmt::format("cannot give {} to group {}", path, *group));
  }
  if (listen(socket_.get(), SOMAXCONN) != 0) Fail(fmt::format("cannot listen at {}", path));
  KeepSpare();
}

Listener::~Listener() { unlink(path_.c_str()); }

void Listener::KeepSpare() {
  if (!spare_) spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

UniqueFd Listener::Accept() {
  exhausted_ = must_reject_ = false;
  KeepSpare();
  UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection || (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)) {
    return connection;
  }
  // Otherwise the connection would stay pending and wake us forever.
  spare_.Reset();
  connection.Reset(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  must_reject_ = static_cast<bool>(connection);
  exhausted_ = !connection;
  if (TimePoint now = MonotonicClock::now(); now >= warn_at_) {
    warn_at_ = now + kWarnEvery;
    spdlog::warn("out of file descriptors: rejected a client (raise the limit: ulimit -n, LimitNOFILE=)");
  }
  return connection;
}

}  // namespace xsched::server
