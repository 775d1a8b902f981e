// The server's parts without its loop and without clients' processes. A test is both ends of each connection,
// and sets the client's identity and the time.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "ipc/testing/packet_of.h"
#include "ipc/testing/populated_segment.h"
#include "server/handshake.h"
#include "server/process_watch.h"
#include "server/testing/server_process.h"
#include "server/tools.h"

namespace xsched::server::testing {

// EventLoop blocks signals. This must not affect other tests of the program.
class SavedSignalMask {
 public:
  SavedSignalMask() { pthread_sigmask(SIG_SETMASK, nullptr, &saved_); }
  ~SavedSignalMask() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  SavedSignalMask(const SavedSignalMask&) = delete;
  SavedSignalMask& operator=(const SavedSignalMask&) = delete;

 private:
  sigset_t saved_{};
};

struct SocketPair {
  SocketPair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    server.Reset(ends[0]);
    client.Reset(ends[1]);
  }
  UniqueFd server;
  UniqueFd client;
};

// The client's end of a connection.
struct Client {
  Connection* connection;  // the server's end
  UniqueFd socket;
  ipc::OwnedSegment segment;  // agents

  std::optional<ipc::Packet> Receive() const {
    ipc::Packet packet;
    if (ipc::ReceivePacket(socket.get(), packet) != ipc::Received::kMessage) return std::nullopt;
    return packet;
  }
  // The next message, if it is a T.
  template <typename T>
  std::optional<T> ReceiveA() const {
    std::optional<ipc::Packet> packet = Receive();
    if (!packet || packet->header().type != T::kType) return std::nullopt;
    return packet->As<T>();
  }
  // Reads everything that it was sent. Returns the number of messages of type T.
  template <typename T>
  int ReadAll() const {
    int count = 0;
    while (std::optional<ipc::Packet> packet = Receive()) count += packet->header().type == T::kType;
    return count;
  }
  ipc::ControlBlock& block(uint32_t index) const { return segment.mapping->blocks[index]; }
  bool IsHeld(uint32_t index) const { return block(index).gate.load() == ipc::kGateHold; }
};

inline constexpr uid_t kServerUser = 500;

class ServerParts : public ::testing::Test {
 protected:
  explicit ServerParts(const sched::SchedulerConfig& config = {}, const SubordinateUsers& subordinates = {},
                       const History::Limits& history = {})
      : subordinates_(subordinates), history_(history), scheduler_(config) {
    scheduler_.SetPolicy(*sched::FindPolicy(kPolicyHighestPriorityFirst));
    TenantRules rules;
    rules.others.max_priority = PRIORITY_MAX;  // tests of priorities need no administrator
    tenants_.SetRules(rules, agents_, queues_, now_);
  }

  Client Connect(Peer peer) {
    SocketPair ends;
    access_.Decide(peer);
    return {connections_.Add(std::move(ends.server), std::move(peer), now_), std::move(ends.client), {}};
  }
  Client ConnectTool(const Peer& peer) {
    Client client = Connect(peer);
    EXPECT_TRUE(SayHello(client, ipc::Role::kTool));
    EXPECT_TRUE(client.ReceiveA<ipc::Welcome>());
    return client;
  }
  // False: the server disconnects the tool.
  template <typename T>
  bool Ask(const Client& tool, const T& request) {
    return tools_.HandleMessage(*tool.connection, PacketOf(request), now_);
  }
  Client ConnectAgent(const Peer& peer, uint64_t job = 0, uint16_t minor = ipc::kMinor) {
    Client client = Connect(peer);
    client.segment = ipc::PopulatedSegment();
    EXPECT_TRUE(SayHello(client, ipc::Role::kAgent, job, minor));
    EXPECT_TRUE(client.ReceiveA<ipc::Welcome>());
    return client;
  }
  bool SayHello(const Client& client, ipc::Role role, uint64_t job = 0, uint16_t minor = ipc::kMinor) {
    ipc::Hello hello{};
    hello.major = ipc::kMajor;
    hello.minor = minor;
    hello.role = role;
    hello.job = job;
    ipc::Packet packet = PacketOf(hello);
    if (role == ipc::Role::kAgent) {
      packet.fds[0].Reset(dup(client.segment.memfd.get()));
      packet.fds[1].Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
      packet.fd_count = 2;
    }
    return handshake_.HandleMessage(*client.connection, packet, now_);
  }
  Agent& AgentOf(const Client& client) { return *agents_.Find(client.connection->id); }
  // Of level 1, or of level 3 on a device that divides its time between processes.
  bool CreateQueue(const Client& client, uint32_t index, int32_t priority, bool time_slices = false,
                   uint64_t device = 1) {
    ipc::QueueCreated message{};
    message.index = index;
    message.level = time_slices ? kPreemptLevelInterrupt : kPreemptLevelBlock;
    message.traits = time_slices ? ipc::kTraitTimeSlices : ipc::kTraitReportsOverruns;
    message.device = device;
    message.hints = {priority, UTILIZATION_DEFAULT, NO_DEADLINE, NO_LAXITY, 0, 0};
    return agents_.HandleMessage(AgentOf(client), PacketOf(message), now_);
  }
  // The client submits a command and rings.
  void Submit(const Client& client, uint32_t index) {
    client.block(index).submitted.fetch_add(1);
    Ring(client, index);
  }
  void Ring(const Client& client, uint32_t index) {
    ipc::RingScheduler(*client.segment.mapping.get(), index, AgentOf(client).doorbell.get());
    process_watch_.HeardFrom(AgentOf(client), now_);
    queues_.ReadDoorbell(AgentOf(client), now_);
  }
  // What a round does after its events.
  void RemoveClosed() {
    connections_.RemoveClosed(now_, [&](const Connection& connection) {
      agents_.Remove(connection.id, now_);
      recordings_.Remove(connection, now_);
      tools_.Remove(connection);
    });
    tenants_.RemoveEnded(queues_.claims());
  }

  static bool IsStoppedForTest(pid_t pid) { return pid == stopped_pid_; }
  static inline pid_t stopped_pid_ = -1;

  TimePoint now_{std::chrono::hours(1)};
  SavedSignalMask mask_;
  EventLoop loop_;
  SegmentGuard guard_;
  const SubordinateUsers subordinates_;
  const History::Limits history_;
  Quotas quotas_{kMaxConnectionsOfUser, subordinates_};
  WorkBudget work_{subordinates_};
  Bells bells_{loop_};
  Connections connections_{loop_, quotas_, work_, now_};
  sched::Scheduler scheduler_;
  static bool IsConfinedForTest(pid_t pid, uid_t) { return pid == confined_pid_; }
  static inline pid_t confined_pid_ = -1;
  AccessRules access_{kServerUser, std::nullopt, IsConfinedForTest};
  // What the kernel says of devices: nothing, unless a test puts it there.
  TempFolder machine_;
  DeviceAccess device_access_{true, {machine_.path(), machine_.path() + "/nvidia"}};
  Wakes wakes_;
  Queues queues_{scheduler_, quotas_, wakes_};
  Agents agents_{{loop_, guard_, bells_, connections_, quotas_, scheduler_, access_, device_access_, wakes_,
                  queues_, work_}};
  static int CpuPriorityForTest(pid_t pid) { return cpu_priorities_[pid]; }
  static inline std::map<pid_t, int> cpu_priorities_;
  ProcessFactsTable process_facts_{agents_, queues_, scheduler_, subordinates_, CpuPriorityForTest};
  TenantTable tenants_{scheduler_, access_, subordinates_};
  AuditLog audit_{"", subordinates_};
  Handshake handshake_{connections_, agents_, process_facts_, tenants_};
  ProcessWatch process_watch_{agents_, queues_, wakes_, scheduler_, IsStoppedForTest};
  UsageMeter usage_{subordinates_};
  Recordings recordings_{
      {connections_, agents_, queues_, scheduler_, access_, usage_, work_, subordinates_}, now_, history_};
  Tools tools_{{connections_, agents_, queues_, scheduler_, access_, process_facts_, recordings_, usage_,
                work_, tenants_, audit_},
               now_};
};

}  // namespace xsched::server::testing
