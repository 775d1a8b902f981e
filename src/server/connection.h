// One client's connection, and what the server knows through it. The server trusts nothing that comes from
// it.
#pragma once

#include <array>
#include <bitset>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/client.h"
#include "ipc/control_access.h"
#include "ipc/segment.h"
#include "sched/core/types.h"
#include "server/access.h"
#include "server/jobs.h"

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
  ipc::SchedulerWords words;  // what its client was last told
  uint64_t submitted = 0;     // as last read: what grows shows that the process lives
  bool hints_untold = false;  // others have hinted it, and its client does not know yet
  Connection* connection;
};

// Which memory a segment is, whoever sent its descriptor.
struct SegmentIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  auto operator<=>(const SegmentIdentity&) const = default;
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
  SegmentIdentity segment_identity;
  std::optional<Job> job;
  bool stopped = false;         // the process is stopped
  bool silent = false;          // it was asked and does not answer: frozen, or it hangs
  TimePoint heard_at{};         // when it last rang or wrote
  TimePoint asked_at = kNever;  // since when it has left something unread
  bool wake_due = false;        // its agent must be woken when this round is over

  // What its buffer had no room for. It is sent as soon as the client has read.
  std::map<uint64_t, uint64_t> unsent_slices;  // the last one of each device, in µs
  std::optional<uint64_t> unsent_pong;         // the cookie of the last ping that was not answered
  int unanswered_pings = 0;
  bool hints_untold = false;  // of some queue

  // Tools.
  std::optional<Listing> listing;

  bool Send(const auto& message) { return ipc::Send(socket.get(), message); }
  bool HasUnsent() const { return hints_untold || unsent_pong || !unsent_slices.empty(); }
  // Has the client read everything that it was sent? True also where the kernel does not say.
  bool HasReadAll() const;
  // Has the client closed its end? What it has said before may still be unread.
  bool HasLeft() const;
};

// Printable ASCII up to the first NUL; other bytes become '?'.
std::string CleanText(const char* text, size_t size);

bool IsValid(const ipc::WireHints& hints);
sched::Hints FromWire(const ipc::WireHints& hints);
ipc::WireHints ToWire(const sched::Hints& hints);

}  // namespace xsched::server
