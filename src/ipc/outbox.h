// What a peer has not taken yet, in order. Sending never waits: what does not fit into the socket's buffer is
// kept here until Flush finds room. Bounded. Not thread-safe.
#pragma once

#include <cstddef>

#include "base/array.h"
#include "ipc/client.h"

namespace xsched::ipc {

class Outbox {
 public:
  // A whole process's queues fit several times.
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  // False: the peer is gone, or too much waits; nothing more can be said on this connection.
  template <typename T>
  bool Send(int fd, T message) {
    Prepare(message);
    return SendBytes(fd, &message, sizeof message);
  }
  // Sends what waits, as far as there is room. False: the peer is gone.
  bool Flush(int fd);
  // How many bytes wait. While any do, Flush is to be called when the socket is writable.
  size_t waiting() const { return bytes_.size() - next_; }
  void Clear();

 private:
  bool SendBytes(int fd, const void* message, size_t size);

  Array<unsigned char> bytes_;  // whole messages; each begins with its header, which tells its size
  size_t next_ = 0;             // the first that waits
};

}  // namespace xsched::ipc
