// Sessions of an older version, as record.py has recorded them.
#pragma once

#include <string>
#include <vector>

#include "ipc/client.h"

namespace xsched::testing {

struct RecordedPacket {
  std::string client;  // "agent" or "tool"
  bool to_server;
  std::vector<unsigned char> bytes;

  ipc::Packet packet() const;
  ipc::MessageType type() const { return packet().header().type; }
};

// In the order in which they were sent. Empty: there is no such file, or a line in it is wrong.
std::vector<RecordedPacket> ReadRecording(const std::string& path);

}  // namespace xsched::testing
