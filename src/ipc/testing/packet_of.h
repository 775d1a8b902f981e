// A message as its receiver gets it, for tests.
#pragma once

#include <string.h>

#include "ipc/client.h"

namespace xsched::ipc {

template <typename T>
Packet PacketOf(T message) {
  Prepare(message);
  Packet packet;
  memcpy(packet.bytes, &message, sizeof message);
  packet.size = sizeof message;
  return packet;
}

}  // namespace xsched::ipc
