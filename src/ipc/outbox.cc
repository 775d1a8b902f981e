#include "ipc/outbox.h"

#include <errno.h>
#include <string.h>

namespace xsched::ipc {
namespace {

bool HasNoRoom(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS; }

}  // namespace

bool Outbox::SendBytes(int fd, const void* message, size_t size) {
  if (waiting() == 0) {
    if (SendPacket(fd, message, size)) return true;
    if (!HasNoRoom(errno)) return false;
  }
  const size_t used = bytes_.size();
  if (waiting() + size > kMaxBytes || !bytes_.Append(size)) return false;
  memcpy(bytes_.data() + used, message, size);
  return true;
}

bool Outbox::Flush(int fd) {
  while (waiting() != 0) {
    Header header;
    memcpy(&header, bytes_.data() + next_, sizeof header);
    if (!SendPacket(fd, bytes_.data() + next_, header.size)) return HasNoRoom(errno);
    next_ += header.size;
    if (next_ > waiting()) DropSent();
  }
  return true;
}

// Called when most bytes have been sent, so each byte moves at most once on average.
void Outbox::DropSent() {
  bytes_.RemoveFront(next_);
  next_ = 0;
}

void Outbox::Clear() {
  bytes_.Clear();
  next_ = 0;
}

}  // namespace xsched::ipc
