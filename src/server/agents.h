// All agents: takes their segments, handles their messages, and sends them what the scheduler decides about
// their processes. It does not read or write control blocks (queues.h does).
//
// No agent can delay a round: if its buffer has no room for a message, the message is kept, and sent when the
// agent has read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/agent.h"
#include "server/bells.h"
#include "server/connections.h"
#include "server/device_access.h"
#include "server/event_loop.h"
#include "server/jobs.h"
#include "server/process_state.h"
#include "server/queues.h"
#include "server/quotas.h"
#include "server/segment_guard.h"
#include "server/wakes.h"
#include "server/work_budget.h"

namespace xsched::server {

class Agents final : sched::ControlSink {
 public:
  // What the agents work with.
  struct Parts {
    EventLoop& loop;
    SegmentGuard& guard;
    Bells& bells;
    Connections& connections;
    Quotas& quotas;
    sched::Scheduler& scheduler;
    const AccessRules& access;
    DeviceAccess& device_access;
    Wakes& wakes;
    Queues& queues;
    WorkBudget& work;
  };
  explicit Agents(const Parts& parts) : parts_(parts) {}

  // Makes `connection` that of an agent, with the segment and the doorbell of its hello. False: they are not
  // valid. The client may have been sent the reason, and the caller closes the connection.
  bool Add(Connection& connection, ipc::Packet& packet, TimePoint now);
  // Adds the agent to the job that agents of its user name by this number, and with it its other jobs.
  void JoinJob(Agent& agent, uint64_t number);
  // Its queues hold nobody from now on. Does nothing if the connection has no agent.
  void Remove(uint64_t connection, TimePoint now);
  // Null: the connection has none.
  Agent* Find(uint64_t connection);
  size_t size() const { return agents_.size(); }
  // `visit(agent)` for the agents of this process, and not for those of a former one with its number. 0:
  // none, because it is the number of all whose processes the server cannot see.
  template <typename Visit>
  void ForEachOf(pid_t pid, Visit&& visit) {
    if (pid == 0) return;
    const auto [first, end] = by_pid_.equal_range(pid);
    if (first == end) return;
    const uint64_t start = StartOf(pid);
    for (auto next = first; next != end; ++next) {
      if (!HasEnded(next->second->connection.peer, start)) visit(*next->second);
    }
  }
  template <typename Visit>
  void ForEach(Visit&& visit) {
    for (auto& [id, agent] : agents_) visit(*agent);
  }

  // False: the message breaks the protocol.
  bool HandleMessage(Agent& agent, const ipc::Packet& packet, TimePoint now);
  // Hints that a tool has set. The agent keeps them: it will register its queues with them at the next
  // server. REQUIRES: SendUnsent afterwards.
  void SetHints(Queue& queue, const sched::Hints& hints, Granted granted);
  // A tool asks for another level or launch config. The agent reports what the queue has then. False: the
  // agent is too old to do this. REQUIRES: SendUnsent afterwards.
  bool SetConfig(Queue& queue, const ipc::SetConfig& request);
  // Sends what the agent's buffer had no room for, or what was too much for one round, if anything. Closes
  // the connection if it cannot be watched for room. Returns the number of queues whose hints or settings it
  // sent.
  size_t SendUnsent(Agent& agent);

  // Passes the agent its part in the tenant's account of memory, if it was not sent yet. False: it could not
  // be sent.
  bool SendMemory(Agent& agent);

  // Lets the scheduler decide, applies the decisions, and wakes the agents that must act. Returns when to
  // decide again.
  TimePoint Decide(TimePoint now);
  uint64_t decisions() const { return decisions_; }
  // How many queues run unscheduled because their users had too many, since the server began.
  uint64_t refused_queues() const { return refused_queues_; }
  // Until when processes may be taking turns on a device.
  TimePoint turns_until() const { return turns_until_; }

 private:
  bool TakeHints(Agent& agent, Queue& queue, const sched::Hints& hints, const sched::Hints& before);
  void CloseFormer(const SegmentIdentity& segment, TimePoint now);
  bool CreateQueue(Agent& agent, const ipc::QueueCreated& message, TimePoint now);
  bool TellOfCorrection(Queue& queue);
  bool RefuseQueue(Agent& agent, uint32_t index, const std::string& reason);
  bool RefuseQueueOfTenant(Agent& agent, uint32_t index);
  static bool TenantIsFull(const Agent& agent);
  bool TakeDeviceFiles(Agent& agent, const ipc::Packet& packet, TimePoint now);
  bool MayUse(const Agent& agent, XDevice device);
  bool GrantAccess(Agent& agent, TimePoint now);
  bool GrantAccess(Agent& agent, Queue& queue, TimePoint now);
  static bool TellOfNoAccess(Agent& agent, const Queue& queue);
  bool DestroyQueue(Agent& agent, uint32_t index, TimePoint now);
  bool SetTimeslice(Agent& agent, const ipc::TimesliceHint& message);
  bool SetAtATime(Agent& agent, const ipc::KDeadlineHint& message);
  bool Answer(Agent& agent, const ipc::Ping& ping);
  bool SendUnsentHints(Agent& agent, size_t& sent);
  bool SendUnsentConfigs(Agent& agent, size_t& sent);

  void SetControl(sched::QueueId id, const sched::Control& control) override;
  void Query(sched::QueueId id) override;
  void SetSlice(sched::ProcessId process, sched::DeviceId device, Duration slice) override;
  void SetTurn(sched::ProcessId process, sched::DeviceId device, bool has_turn) override;

  Parts parts_;
  std::unordered_map<uint64_t, std::unique_ptr<Agent>> agents_;  // by the connection's id
  std::unordered_multimap<pid_t, Agent*> by_pid_;
  std::map<SegmentIdentity, uint64_t> segments_;  // the connection that each belongs to
  Jobs jobs_;
  TimePoint turns_until_{};
  TimePoint decided_at_{};
  uint64_t decisions_ = 0;
  uint64_t refused_queues_ = 0;
};

}  // namespace xsched::server
