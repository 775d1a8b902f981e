// One client's connection, and what the server knows through it. The server trusts nothing that comes from
// it.
#pragma once

#include <array>
#include <bitset>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/client.h"
#include "ipc/segment.h"
#include "sched/core/types.h"
#include "server/access.h"

namespace xsched::server {

struct Connection;

// A queue as its client described it. Texts are cleaned for people's eyes.
struct Queue {
  sched::QueueId id;
  uint32_t index;
  uint32_t level;
  uint32_t platform;
  uint32_t traits;
  uint64_t device;
  uint64_t handle;
  int64_t threshold;
  int64_t batch_size;
  std::string device_name;
  bool absent = false;  // by the program's own word
  bool has_dependencies = false;
  bool held = false;  // what its client was last told
  uint32_t flags = 0;
  bool hints_untold = false;  // others have hinted it, and its client does not know yet
  Connection* connection;
};

// A tool's answer to kList that it has not taken in full.
struct Listing {
  std::vector<uint64_t> queues;  // their ids, in the order in which they are told
  size_t next = 0;
  uint32_t told = 0;
  TimePoint blocked_since{};
};

struct Connection {
  UniqueFd socket;
  Peer peer;
  uint64_t id;
  TimePoint since;
  bool closed = false;  // to be removed after this round of events

  // From the hello on.
  std::optional<ipc::Role> role;
  std::string name;

  // Agents.
  ipc::MappedSegment segment;
  UniqueFd bell;
  std::map<uint32_t, Queue> queues;      // by index
  std::bitset<ipc::kMaxQueues> refused;  // indices of queues that nobody schedules
  bool stopped = false;                  // the process is stopped
  TimePoint heard_at{};                  // when it last rang or wrote
  bool wake_due = false;                 // its agent must be woken when this round is over
  bool hints_untold = false;             // of some queue; its buffer was full

  // Tools.
  std::optional<Listing> listing;

  bool Send(const auto& message) { return ipc::Send(socket.get(), message); }
};

// Printable ASCII up to the first NUL; other bytes become '?'.
std::string CleanText(const char* text, size_t size);

bool IsValid(const ipc::WireHints& hints);
sched::Hints FromWire(const ipc::WireHints& hints);
ipc::WireHints ToWire(const sched::Hints& hints);

}  // namespace xsched::server
