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

// The socket's path: XSCHED_SOCKET if set; else the user's, $XDG_RUNTIME_DIR/xsched/xserver.sock, if it
// exists; else /run/xsched/xserver.sock. Without XDG_RUNTIME_DIR the user's path is
// /tmp/xsched-<uid>/xserver.sock. A folder in which another user could put a socket is not used: whose server
// it is decides when this program runs.
struct SocketPath {
  char text[108];
};
// What the environment says of it. It is read in a thread of the program's: one of ours could meet the
// program's setenv, which moves what it reads.
struct SocketChoice {
  bool is_chosen = false;     // XSCHED_SOCKET is set
  SocketPath chosen;          // to this; empty: to something too long
  SocketPath runtime_folder;  // XDG_RUNTIME_DIR; empty: not set, or no absolute path
};
SocketChoice ReadSocketChoice();
// Where a client finds a server now: the user's own first, then the system's. Where there is none, the path
// at which the user's would be, or the system's if that one would not be safe.
SocketPath FindServerSocket(const SocketChoice& choice = ReadSocketChoice());
// Where a per-user server listens, and the system's.
SocketPath UserServerSocket();
SocketPath SystemServerSocket();

// Can nobody but this user and root put a socket into `folder`? The error says why not, in a sentence.
Result<> CheckSocketFolder(const char* folder);
// The same of the folder of UserServerSocket. One that does not exist yet is in order.
Result<> CheckUserServerFolder();

// A non-blocking, close-on-exec SEQPACKET connection.
Result<UniqueFd> ConnectToServer(const SocketPath& path);

// Fills in type and size, so that senders write the payload only.
template <typename T>
void Prepare(T& message) {
  message.header = Header{T::kType, 0, sizeof(T)};
}

// Sends one packet, with up to 4 descriptors. Never raises SIGPIPE. False with errno set on failure; EAGAIN
// when the peer's buffer is full.
bool SendPacket(int fd, const void* data, size_t size, const int* fds = nullptr, int fd_count = 0);

template <typename T>
bool Send(int fd, T message, const int* fds = nullptr, int fd_count = 0) {
  Prepare(message);
  return SendPacket(fd, &message, sizeof message, fds, fd_count);
}

// Waits until the peer takes a packet. Its buffer may hold no more than ten (net.unix.max_dgram_qlen), so who
// has several things to say needs this. False: it did not within the time, or it is gone.
bool WaitUntilSendable(int fd, int timeout_ms);

// As Send, but a full buffer is waited for.
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
  UniqueFd fds[4];
  int fd_count = 0;

  // REQUIRES: ReceivePacket returned kMessage.
  const Header& header() const { return *reinterpret_cast<const Header*>(bytes); }
  // The message as a T, zero-filled where the sender's was shorter. REQUIRES: header().type == T::kType.
  template <typename T>
  T As() const {
    T message{};
    memcpy(static_cast<void*>(&message), bytes, size < sizeof(T) ? size : sizeof(T));
    return message;
  }
};

enum class Received {
  kMessage,
  kNothing,    // would block
  kClosed,     // the peer is gone
  kMalformed,  // too short, too long, truncated, or `size` is not the packet's: close the connection
};
// Takes one packet. Surplus descriptors are closed.
Received ReceivePacket(int fd, Packet& packet);

}  // namespace xsched::ipc
