// Messages that a peer has not taken yet, in order. Sending never waits: what does not fit into the socket's
// buffer is kept here until Flush finds room. Bounded. Not thread-safe.
#pragma once

#include <cstddef>

#include "base/array.h"
#include "ipc/client.h"

namespace xsched::ipc {

class Outbox {
 public:
  // Room for the messages of a whole process's queues, several times.
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  // False: the peer is gone, or too much waits. Then this connection cannot be used any more.
  template <typename T>
  bool Send(int fd, T message) {
    Prepare(message);
    return SendBytes(fd, &message, sizeof message);
  }
  // Sends waiting messages, as far as there is room. False: the peer is gone.
  bool Flush(int fd);
  // The number of waiting bytes. If it is not 0, call Flush when the socket is writable.
  size_t waiting() const { return bytes_.size() - next_; }
  // The same with sent bytes that still take memory: no more than those that wait.
  size_t stored() const { return bytes_.size(); }
  void Clear();

 private:
  void DropSent();
  bool SendBytes(int fd, const void* message, size_t size);

  Array<unsigned char> bytes_;  // whole messages; each begins with its header, which has its size
  size_t next_ = 0;             // offset of the first waiting one
};

}  // namespace xsched::ipc
