#include "ipc/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/user_ids.h"

namespace xsched::ipc {
namespace {

template <typename... Args>
SocketPath Format(const char* format, Args... args) {
  SocketPath path{};
  int length = snprintf(path.text, sizeof path.text, format, args...);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path.text) path.text[0] = '\0';
  return path;
}

bool IsSocket(const SocketPath& path) {
  struct stat status {};
  return stat(path.text, &status) == 0 && S_ISSOCK(status.st_mode);
}

// Nobody listens there any more: its server was killed, and left the file.
bool IsStale(const SocketPath& path) {
  const Result<UniqueFd> connected = ConnectToServer(path);
  return !connected && connected.error().errnum() == ECONNREFUSED;
}

// True if XDG_RUNTIME_DIR is set and safe. (After sudo, root may have another user's.)
bool HasRuntimeFolder(const SocketChoice& choice) {
  return choice.runtime_folder.text[0] == '/' && CheckSocketFolder(choice.runtime_folder.text);
}

SocketPath UserServerFolder(const SocketChoice& choice) {
  if (HasRuntimeFolder(choice)) return Format("%s/xsched", choice.runtime_folder.text);
  return Format("/tmp/xsched-%u", geteuid());
}

SocketPath SocketIn(const SocketPath& folder) { return Format("%s/xserver.sock", folder.text); }

// If the folder does not exist, the server will make it.
Result<> CheckToBeMade(const SocketPath& folder) {
  Result<> checked = CheckSocketFolder(folder.text);
  if (!checked && checked.error().errnum() == ENOENT) return {};
  return checked;
}

}  // namespace

SocketPath SystemServerSocket() { return Format("%s", "/run/xsched/xserver.sock"); }

SocketPath UserServerSocket() { return SocketIn(UserServerFolder(ReadSocketChoice())); }

SocketChoice ReadSocketChoice() {
  SocketChoice choice{};
  if (const char* path = getenv("XSCHED_SOCKET"); path != nullptr && path[0] != '\0') {
    choice.is_chosen = true;
    choice.chosen = Format("%s", path);
  }
  if (const char* folder = getenv("XDG_RUNTIME_DIR"); folder != nullptr && folder[0] == '/') {
    choice.runtime_folder = Format("%s", folder);
  }
  return choice;
}

Result<> CheckSocketFolder(const char* folder) {
  struct stat status {};
  if (lstat(folder, &status) != 0) return Error::FromErrno(errno, "cannot look at the folder %s", folder);
  auto is_ours = [&status] {
    return (status.st_uid == geteuid() && !StandsForSeveral(status.st_uid)) || status.st_uid == 0;
  };
  // The link may be ours. Then its target is what we want.
  if (is_ours() && S_ISLNK(status.st_mode) && stat(folder, &status) != 0) {
    return Error::FromErrno(errno, "cannot look at the folder %s", folder);
  }
  if (!is_ours()) {
    return Error::Make("%s belongs to user %u, who could put another server there", folder, status.st_uid);
  }
  if (!S_ISDIR(status.st_mode)) return Error::Make("%s is not a folder", folder);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error::Make("others may write to the folder %s, and could put another server there", folder);
  }
  return {};
}

Result<> CheckUserServerFolder() { return CheckToBeMade(UserServerFolder(ReadSocketChoice())); }

SocketPath FindServerSocket(const SocketChoice& choice) {
  if (choice.is_chosen) return choice.chosen;
  const SocketPath folder = UserServerFolder(choice);
  const SocketPath user = SocketIn(folder);
  const bool trusted = static_cast<bool>(CheckSocketFolder(folder.text));
  const SocketPath system = SystemServerSocket();
  if (trusted && IsSocket(user) && !(IsSocket(system) && IsStale(user))) return user;
  // If the user's path does not exist, no other user can make it, except in /tmp.
  const bool safe = trusted || (HasRuntimeFolder(choice) && CheckToBeMade(folder));
  return safe && !IsSocket(system) ? user : system;
}

Result<UniqueFd> ConnectToServer(const SocketPath& path) {
  if (path.text[0] == '\0') return Error::Make("the path of the server's socket is too long");
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::FromErrno(errno, "cannot make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.text,
         sizeof address.sun_path < sizeof path.text ? sizeof address.sun_path : sizeof path.text);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Error::FromErrno(errno, "no XSched server at %s", path.text);
  }
  return fd;
}

bool SendPacket(int fd, const void* data, size_t size, const int* fds, int fd_count) {
  iovec part{const_cast<void*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * Packet::kMaxFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd_count > 0) {
    size_t bytes = sizeof(int) * static_cast<size_t>(fd_count);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), fds, bytes);
  }
  ssize_t sent;
  do {
    sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

bool WaitUntilSendable(int fd, int timeout_ms) {
  for (;;) {
    pollfd writable{fd, POLLOUT, 0};
    int count = poll(&writable, 1, timeout_ms);
    if (count < 0 && errno == EINTR) continue;
    return count == 1 && (writable.revents & POLLOUT) != 0;
  }
}

namespace {

void TakeFds(msghdr& message, Packet& packet) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      if (packet.fd_count < Packet::kMaxFds) {
        packet.fds[packet.fd_count++].Reset(fd);
      } else {
        close(fd);  // no kernel does this
      }
    }
  }
}

}  // namespace

Received ReceivePacket(int fd, Packet& packet) {
  iovec part{packet.bytes, sizeof packet.bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * Packet::kMaxFds)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  packet.size = 0;
  packet.fd_count = 0;
  ssize_t received;
  do {
    received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Received::kNothing : Received::kClosed;
  TakeFds(message, packet);
  // An empty packet and the end of the connection look the same; neither is a message.
  if (received == 0) return Received::kClosed;
  packet.size = static_cast<size_t>(received);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return Received::kMalformed;
  if (packet.size < sizeof(Header) || packet.header().size != packet.size) return Received::kMalformed;
  return Received::kMessage;
}

bool NextHasDescriptors(int fd) {
  msghdr message{};  // no room for any, which the kernel says
  return recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
}

}  // namespace xsched::ipc
