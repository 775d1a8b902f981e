// A message of any type, for either side of the socket: mostly with its type's length, and any content.
#pragma once

#include <cstring>
#include <iterator>

#include "fuzz/bytes.h"
#include "ipc/client.h"

namespace xsched::fuzz {

inline ipc::Packet AnyMessage(Bytes& bytes) {
  ipc::Packet packet{};
  const auto& [type, size] = ipc::kMessageSizes[bytes.Below(std::size(ipc::kMessageSizes))];
  ipc::Header header{type, 0, size};
  const uint32_t oddity = bytes.Below(8);
  if (oddity == 0) header.type = static_cast<ipc::MessageType>(bytes.Next<uint16_t>());
  if (oddity == 1) header.size = static_cast<uint32_t>(sizeof header) + bytes.Below(256);
  memcpy(packet.bytes, &header, sizeof header);
  // Prefer small numbers, because they are more often the index of a queue.
  packet.bytes[sizeof header] = static_cast<unsigned char>(bytes.Below(16));
  if (bytes.Below(2) == 0) bytes.Fill(packet.bytes + sizeof header + 1, header.size - sizeof header - 1);
  packet.size = header.size;
  return packet;
}

}  // namespace xsched::fuzz
