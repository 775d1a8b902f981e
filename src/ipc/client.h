// The client's end of the socket. Fit for foreign processes: no allocation, no exceptions, and no descriptor
// that a child process inherits.
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "ipc/messages.h"

namespace xsched::ipc {

// The socket's path: XSCHED_SOCKET if it is set; else the user's, $XDG_RUNTIME_DIR/xsched/xserver.sock, if it
// exists; else /run/xsched/xserver.sock. Without XDG_RUNTIME_DIR the user's path is
// /tmp/xsched-<uid>/xserver.sock. A folder in which another user could put a socket is not used, because that
// user's server would then decide when this program runs.
struct SocketPath {
  char text[108];
};
// The environment's settings for it. They are read on a thread of the program: on one of ours, the program's
// setenv could move the text while it is read.
struct SocketChoice {
  bool is_chosen = false;     // XSCHED_SOCKET is set
  SocketPath chosen;          // XSCHED_SOCKET; empty: it is too long
  SocketPath runtime_folder;  // XDG_RUNTIME_DIR; empty: not set, or not an absolute path
};
SocketChoice ReadSocketChoice();
// The path where a client finds a server now: the user's own first, then the system's. If there is none, the
// path of the user's server, or of the system's if the first is not safe. A file that a killed server has
// left hides no other server.
SocketPath FindServerSocket(const SocketChoice& choice = ReadSocketChoice());
// The paths of a per-user server and of the system's server.
SocketPath UserServerSocket();
SocketPath SystemServerSocket();

// Ok: only this user and root can put a socket into `folder`. The error says why not, in a sentence.
Result<> CheckSocketFolder(const char* folder);
// The same for the folder of UserServerSocket. It is ok if that folder does not exist yet.
Result<> CheckUserServerFolder();

// A non-blocking, close-on-exec SEQPACKET connection.
Result<UniqueFd> ConnectToServer(const SocketPath& path);

// Fills in type and size, so that senders write the payload only.
template <typename T>
void Prepare(T& message) {
  message.header = Header{T::kType, 0, sizeof(T)};
}

// Sends one packet, with up to Packet::kMaxFds descriptors. Never raises SIGPIPE. False with errno set on
// failure; EAGAIN when the peer's buffer is full.
bool SendPacket(int fd, const void* data, size_t size, const int* fds = nullptr, int fd_count = 0);

template <typename T>
bool Send(int fd, T message, const int* fds = nullptr, int fd_count = 0) {
  Prepare(message);
  return SendPacket(fd, &message, sizeof message, fds, fd_count);
}

// Waits until the peer can take a packet. Its buffer may hold only ten packets (net.unix.max_dgram_qlen), so
// a sender of several needs this. False: there was no room within the time, or the peer is gone.
bool WaitUntilSendable(int fd, int timeout_ms);

// As Send, but waits if the buffer is full.
template <typename T>
bool SendWithin(int fd, int timeout_ms, const T& message) {
  while (!Send(fd, message)) {
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !WaitUntilSendable(fd, timeout_ms)) return false;
  }
  return true;
}

struct Packet {
  alignas(8) unsigned char bytes[kMaxMessage];
  size_t size = 0;
  // As many as the kernel passes with one message: it closes itself what it has no room for, and that may
  // take long.
  static constexpr int kMaxFds = 253;
  UniqueFd fds[kMaxFds];
  int fd_count = 0;

  // REQUIRES: ReceivePacket returned kMessage.
  const Header& header() const { return *reinterpret_cast<const Header*>(bytes); }
  // The message as a T, zero-filled where the sender's was shorter. Its texts end. REQUIRES: header().type ==
  // T::kType.
  template <typename T>
  T As() const {
    T message{};
    memcpy(static_cast<void*>(&message), bytes, size < sizeof(T) ? size : sizeof(T));
    EndTexts(message);
    return message;
  }
};

enum class Received {
  kMessage,
  kNothing,    // would block
  kClosed,     // the peer is gone
  kMalformed,  // too short, too long, truncated, or `size` is not the packet's: close the connection
};
// Takes one packet.
Received ReceivePacket(int fd, Packet& packet);
// True if the next packet has descriptors. Takes nothing.
bool NextHasDescriptors(int fd);

}  // namespace xsched::ipc
