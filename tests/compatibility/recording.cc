#include "recording.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace xsched::testing {

ipc::Packet RecordedPacket::packet() const {
  ipc::Packet packet;
  packet.size = std::min(bytes.size(), sizeof packet.bytes);
  std::copy_n(bytes.begin(), packet.size, packet.bytes);
  return packet;
}

std::vector<RecordedPacket> ReadRecording(const std::string& path) {
  std::vector<RecordedPacket> packets;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::string client;
    std::string direction;
    std::string digits;
    std::istringstream(line) >> client >> direction >> digits;
    if (digits.size() < 2 * sizeof(ipc::Header) || digits.size() % 2 != 0) return {};
    RecordedPacket& packet = packets.emplace_back(RecordedPacket{client, direction == ">", {}});
    for (size_t i = 0; i < digits.size(); i += 2) {
      packet.bytes.push_back(static_cast<unsigned char>(std::stoul(digits.substr(i, 2), nullptr, 16)));
    }
  }
  return packets;
}

}  // namespace xsched::testing
