// One agent: the part of a client process that registers queues, and what the server knows through it. Data
// alone: agents.h and queues.h say what is done with it.
#pragma once

#include <sys/types.h>

#include <bitset>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/fd.h"
#include "ipc/control_access.h"
#include "ipc/segment.h"
#include "sched/core/types.h"
#include "server/agent_outbox.h"
#include "server/connection.h"
#include "server/jobs.h"
#include "server/liveness.h"

namespace xsched::server {

struct Agent;

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
  ipc::SchedulerWords words;  // what stands in its control block, by our last word
  uint64_t submitted = 0;     // as last read: what grows shows that the process lives
  bool hints_unsent = false;  // a tool has set them, and the agent has not been sent them
  Agent* agent;

  ipc::ControlBlock& block() const;
};

// Which memory a segment is, whoever sent its descriptor.
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

  Connection& connection;
  ipc::MappedSegment segment;
  SegmentIdentity segment_identity;
  UniqueFd doorbell;
  std::map<uint32_t, Queue> queues;      // by index
  std::bitset<ipc::kMaxQueues> refused;  // indices of queues that nobody schedules
  std::optional<Job> job;
  Liveness liveness;
  AgentOutbox outbox;
  bool hints_unsent = false;  // of some queue
  bool wake_due = false;      // it is woken when this round is over
};

inline ipc::ControlBlock& Queue::block() const { return agent->segment->blocks[index]; }

}  // namespace xsched::server
