// Writes what the server sends of a recording as lines (docs/recording.md). Pure: messages in, text out.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "base/clock.h"
#include "cli/record/gone_queues.h"
#include "ipc/client.h"

namespace xsched::cli {

class RecordingWriter {
 public:
  struct Head {
    std::string started;  // 2026-11-22T20:00:00Z
    int64_t started_unix_ns;
    std::string version;  // of XSched
    std::string policy;   // of the server, when the recording began
  };

  // `anonymous`: names of programs, users and pids are replaced by numbers.
  RecordingWriter(std::ostream& out, bool anonymous) : out_(out), anonymous_(anonymous) {}

  // First.
  void Begin(const Head& head);
  // Messages that are no part of a recording are ignored.
  void Write(const ipc::Packet& packet);
  // Last. `why` it ended.
  void End(Duration at, const std::string& why);

  uint64_t queues() const { return queues_seen_; }
  uint64_t bursts() const { return bursts_; }
  // How many messages of the server are missing, because this program was too slow.
  uint64_t lost() const { return lost_; }

 private:
  // Keys stay in the order in which they are set.
  using Json = nlohmann::ordered_json;
  using Numbers = std::map<std::string, uint64_t>;
  // Where a queue is, by numbers of this file.
  struct Place {
    uint64_t process;
    uint64_t device;
  };

  void WriteQueue(const ipc::RecordedQueue& queue);
  void WriteBurst(const ipc::RecordedBurst& burst);
  void WriteOneBurst(uint64_t queue, const ipc::RecordedBurst& all, uint32_t index, uint32_t count);
  void WriteHold(const ipc::RecordedHold& hold);
  void WriteWait(const ipc::RecordedWait& wait);
  void WriteSlice(const ipc::RecordedSlice& slice);
  void WriteTurn(const ipc::RecordedTurn& turn);
  void WriteMemory(const ipc::RecordedMemory& memory);
  template <typename Message>
  void WriteOfProcess(const Message& message, const char* kind, const Json& more);
  void WriteInFlight(const ipc::RecordedInFlight& in_flight);
  void WriteEnd(const ipc::RecordedEnd& end);
  void WriteLoss(const ipc::RecordedLoss& loss);
  void WriteDevice(const ipc::RecordedQueue& queue);
  void WriteProcess(const ipc::RecordedQueue& queue);
  void Line(uint64_t at_ns, const char* kind, Json what);
  // The number in this file of what the server names by `key`; a new one if it has none.
  static uint64_t NumberOf(Numbers& numbers, const std::string& key);
  // Null: no such queue was described, or it is gone.
  const uint64_t* FindQueue(uint64_t id) const { return Find(queues_, id); }
  static const uint64_t* Find(const std::map<uint64_t, uint64_t>& queues, uint64_t id);

  std::ostream& out_;
  bool anonymous_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> devices_;  // by platform and the server's number
  std::map<uint64_t, uint64_t> processes_;                     // by the server's number
  std::map<uint64_t, uint64_t> queues_;
  std::map<uint64_t, Place> places_;   // of these
  std::map<uint64_t, uint64_t> gone_;  // queues: the end of one may be the end of a hold
  GoneQueues gone_lately_;             // these
  Numbers programs_, users_, jobs_;
  uint64_t last_ns_ = 0;  // the latest time in the file
  uint64_t queues_seen_ = 0;
  uint64_t bursts_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace xsched::cli
