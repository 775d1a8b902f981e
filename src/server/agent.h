// One agent: the part of a client process that registers queues. This is what the server knows of it, as data
// only: agents.h and queues.h work with it.
#pragma once

#include <sys/types.h>

#include <bitset>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "ipc/control_access.h"
#include "ipc/segment.h"
#include "sched/core/scheduler.h"
#include "server/agent_outbox.h"
#include "server/bells.h"
#include "server/connection.h"
#include "server/device_access.h"
#include "server/ended_bursts.h"
#include "server/jobs.h"
#include "server/limits.h"
#include "server/liveness.h"
#include "server/segment_guard.h"
#include "server/tenants/tenant.h"
#include "server/usage.h"

namespace xsched::server {

struct Agent;
struct ProcessOnDevice;

// What tools ask for and was not sent to the agent yet; 0: nothing.
struct WantedConfig {
  uint32_t level = 0;
  int64_t threshold = 0;
  int64_t batch_size = 0;
};

// What has been counted of a queue, and where (usage_meter.h).
struct QueueUsage {
  Account* of_user = nullptr;  // null: it has had nothing yet
  Account* of_process = nullptr;
  Usage* of_tenant = nullptr;   // null: it is of no known tenant
  RequestTimes* own = nullptr;  // null: its requests are not counted by themselves (queue_times.h)
  Priority priority = 0;        // that of these accounts
  // As they were when they were counted last.
  Duration service{};
  Duration waiting{};
  uint64_t commands = 0;
  uint64_t holds = 0;
  uint64_t incidents = 0;
  sched::WaitReason why = sched::WaitReason::kNone;  // since then
  // As last seen, for its requests.
  TimePoint ready_since = kNever;  // kNever: no request goes on, or it is not known since when
  bool goes_on = false;            // a request does; if its client counts bursts
  uint64_t retired = 0;
  bool was_idle = false;
  bool reported = false;
  std::optional<ipc::Bursts> bursts;
  SeenEnd seen_end;
  TimePoint seen_at{};

  void CountTurn() const noexcept;
};

// Which of a queue's priorities an administrator has set: these count as they are, and claim nothing.
struct Granted {
  bool priority = false;
  bool lax_priority = false;
  bool critical_priority = false;
};

// A queue as its client described it. Its texts are cleaned for display.
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
  sched::Hints hints;  // what was asked for; PriorityClaims says what of it counts
  Granted granted;
  bool absent = false;  // the program has suspended it
  // Its process has shown that it can use the device (device_access.h). The scheduler knows no other queues.
  bool has_access = true;
  bool has_dependencies = false;
  ipc::SchedulerWords words;  // what we last wrote into its control block
  uint64_t submitted = 0;     // as last read: if it grows, the process is alive
  uint64_t retired = 0;       // likewise
  ipc::Bursts bursts;         // likewise, and not newer than these
  bool hints_unsent = false;  // a tool has set them, and they have not been sent to the agent
  std::optional<WantedConfig> config_unsent;
  bool recorded = false;                 // a tool records it, so its client counts its bursts
  bool touched = false;                  // since the recordings last looked at it
  ProcessOnDevice* on_device = nullptr;  // what is recorded of its process there (recording/process_tracks.h)
  QueueUsage usage;
  Agent* agent;

  ipc::ControlBlock& block() const;
  // Its client counts bursts while it reports, and does so right.
  bool CountsReported() const;
  // Null: its client does not count them now.
  std::optional<ipc::Bursts> CountedBursts() const;
};

// Identifies the memory of a segment, independent of who sent its descriptor.
struct SegmentIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  auto operator<=>(const SegmentIdentity&) const = default;
};

struct Agent {
  Agent(Connection& its_connection, TimePoint now) : connection(its_connection), liveness(now) {}
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  uint64_t id() const { return connection.id; }
  sched::ProcessId process() const { return sched::ProcessId{connection.id}; }
  // `visit(queue)` for those on this device, until it returns false.
  template <typename Visit>
  void ForEachOn(uint64_t device, Visit&& visit) {
    const auto end = by_device.upper_bound({device, ipc::kMaxQueues});
    for (auto next = by_device.lower_bound({device, 0}); next != end && visit(*next->second);) ++next;
  }

  Connection& connection;
  ipc::MappedSegment segment;
  SegmentGuard::Watched guarded;  // it ends before the mapping
  SegmentIdentity segment_identity;
  UniqueFd doorbell;
  std::map<uint32_t, Queue> queues;  // by index
  // The same, by device and index.
  std::map<std::pair<uint64_t, uint32_t>, Queue*> by_device;
  std::bitset<ipc::kMaxQueues> refused;   // indices of queues that are not scheduled
  bool knows_of_no_access = false;        // it was sent that a queue has no access
  ShownDevices shown;                     // by the process
  std::vector<Job> jobs;                  // they are one; the first is the one that its hello named
  Tenant* tenant = nullptr;               // null: none is known, and nothing limits it
  std::optional<MemorySlot> memory;       // its part in the tenant's account of memory
  std::vector<MemorySlot> former_memory;  // of tenants that it was of, which it may still write
  bool claims_anything = false;           // it is an administrator's
  std::string told;                       // how its claims were corrected, as it was told last
  Liveness liveness;
  sched::ProcessFacts facts;
  Accounts accounts{kMaxAccountsOfProcess};
  AgentOutbox outbox;
  BellState bell;
  bool hints_unsent = false;  // of some queue
  bool configs_unsent = false;
  bool memory_unsent = false;
  bool wake_due = false;  // it is woken at the end of this round
};

inline ipc::ControlBlock& Queue::block() const { return agent->segment->blocks[index]; }

inline bool Queue::CountsReported() const {
  constexpr uint16_t kFirstThatDoes = 11;
  return agent->connection.minor >= kFirstThatDoes;
}

inline std::optional<ipc::Bursts> Queue::CountedBursts() const {
  constexpr uint16_t kFirstThatCounts = 6;  // older clients only report
  const bool counts = words.scheduled() ? CountsReported() : agent->connection.minor >= kFirstThatCounts;
  return words.counted() && counts ? std::optional(bursts) : std::nullopt;
}

}  // namespace xsched::server
