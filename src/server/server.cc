#include "server/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "server/event_tag.h"
#include "server/limits.h"
#include "server/tenants/audit_text.h"

namespace xsched::server {
namespace {

sched::SchedulerConfig SchedulerConfigOf(const Options& options) {
  sched::SchedulerConfig config;
  config.grace = options.grace;
  config.process_grace = options.process_grace;
  config.timeslice = options.timeslice;
  config.at_a_time = options.at_a_time;
  return config;
}

// Where there are fewer descriptors than the limits assume, one user has a quarter of them as well. An agent
// takes two.
size_t ConnectionsOfUser(const Options& options) {
  rlimit limit{};
  if (!options.system || getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxConnectionsOfUser;
  return std::clamp<size_t>(limit.rlim_cur / 8, 1, kMaxConnectionsOfUser);
}

// Closes the remaining descriptors of a packet, also if memory runs out while the packet is handled.
struct DisposeOfDescriptors {
  Disposer& disposer;
  uid_t user;
  ipc::Packet& packet;

  ~DisposeOfDescriptors() {
    for (int i = 0; i < packet.fd_count; ++i) disposer.Take(user, std::move(packet.fds[i]));
  }
};

}  // namespace

Server::Server(const Options& options, Listener& listener, const Surroundings& surroundings)
    : clock_(surroundings.clock),
      idle_exit_(options.idle_exit),
      tenants_path_(options.tenants),
      tenants_must_exist_(options.tenants_must_exist),
      subordinates_(options.system ? SubordinateUsers("/etc/subuid") : SubordinateUsers()),
      access_(geteuid(), FindGroup(options.admin_group), surroundings.is_confined),
      device_access_(options.system),
      scheduler_(SchedulerConfigOf(options)),
      disposer_(subordinates_),
      work_(subordinates_),
      bells_(loop_),
      quotas_(ConnectionsOfUser(options), subordinates_),
      connections_(loop_, quotas_, work_, clock_()),
      queues_(scheduler_, quotas_, wakes_),
      agents_({loop_, segment_guard_, bells_, connections_, quotas_, scheduler_, access_, device_access_,
               wakes_, queues_, work_}),
      process_facts_(agents_, queues_, scheduler_, subordinates_),
      tenants_(scheduler_, access_, subordinates_),
      audit_(AuditLog::kJournal, subordinates_),
      handshake_(connections_, agents_, process_facts_, tenants_),
      process_watch_(agents_, queues_, wakes_, scheduler_, surroundings.is_stopped),
      usage_(subordinates_),
      recordings_({connections_, agents_, queues_, scheduler_, access_, usage_, work_, subordinates_},
                  clock_(), {.of_user = options.history}),
      tools_({connections_, agents_, queues_, scheduler_, access_, process_facts_, recordings_, usage_, work_,
              tenants_, audit_},
             clock_()),
      acceptor_(listener, loop_, connections_, access_) {
  scheduler_.SetPolicy(options.policy);
  if (tenants_path_.empty()) return;
  Result<TenantRules> rules = ReadTenantRules(tenants_path_, tenants_must_exist_);
  if (!rules) throw std::runtime_error(rules.error().text());
  tenants_.SetRules(std::move(*rules), agents_, queues_, clock_());
}

Server::~Server() { queues_.OpenAllGates(); }

void Server::Run() {
  constexpr int kMaxFailuresInARow = 3;
  service_manager_.Notify("READY=1");
  Round(0);
  for (int failures = 0; !loop_.end_requested() && !hung_up_ && !idle_for_long_;) {
    try {
      Round(-1);
      failures = 0;
    } catch (const std::exception& error) {
      // It is not known what the round left undone. So no queue stays held by it.
      CloseAllAgents(clock_());
      if (++failures == kMaxFailuresInARow) throw;
      spdlog::error("{}: all clients must connect anew", error.what());
    }
  }
  service_manager_.Notify("STOPPING=1");
}

void Server::Round(int timeout_ms) {
  const std::span<const uint64_t> events = loop_.Wait(timeout_ms);
  const TimePoint now = clock_();
  work_.BeginRound();
  if (const std::optional<SignalSender> sender = loop_.TakeHangup()) HandleHangup(*sender, now);
  // What ends this server may end them as well.
  if (loop_.TakeChildEnd() && !loop_.end_requested()) http::TakeEnded(http_programs_);
  for (uint64_t tag : events) HandleEventOrClose(tag, now);
  CloseTorn();
  RemoveClosed(now);
  const TimePoint housekeeping_at = Housekeeping(now);
  RemoveClosed(now);
  const TimePoint decide_at = agents_.Decide(now);
  const TimePoint record_at = recordings_.Look(now);
  const TimePoint check_at = process_watch_.NextCheck(now);
  CloseTorn();
  // Connections that a decision closes are removed by the next round, which follows at once.
  loop_.WakeAt(connections_.removal_due() ? now
                                          : std::min({housekeeping_at, decide_at, record_at, check_at}));
}

// Memory may run out while one client's request is handled. This must not affect the others.
void Server::HandleEventOrClose(uint64_t tag, TimePoint now) {
  try {
    HandleEvent(tag, now);
  } catch (const std::exception& error) {
    if (Connection* connection = connections_.Find(ConnectionOf(tag)))
      connections_.Close(*connection, error.what());
  }
}

void Server::HandleEvent(uint64_t tag, TimePoint now) {
  if (SourceOf(tag) == EventSource::kListener) return acceptor_.Accept(now);
  // A doorbell, which rings most often, is looked up once.
  Agent* agent = agents_.Find(ConnectionOf(tag));
  Connection* connection = agent != nullptr ? &agent->connection : connections_.Find(ConnectionOf(tag));
  if (connection == nullptr || connection->closed) return;
  const uid_t user = connection->peer.uid;
  if (work_.IsSpent(user)) {
    // A socket is reported again in any case.
    if (agent != nullptr && SourceOf(tag) == EventSource::kDoorbell) bells_.RingAgain(*agent);
    return;
  }
  work_.Charge(user, 1);
  if (agent != nullptr) {
    process_watch_.HeardFrom(*agent, now);
    work_.Charge(user, agents_.SendUnsent(*agent) * WorkBudget::kSent);
    if (connection->closed) return;
    if (SourceOf(tag) == EventSource::kDoorbell) return HandleDoorbell(*agent, now);
  }
  recordings_.SendUnread(*connection, now);
  if (!tools_.IsAnswering(*connection)) return ReadMessages(*connection, now);
  if (!tools_.Continue(*connection, now)) connections_.Close(*connection, nullptr);
}

void Server::HandleDoorbell(Agent& agent, TimePoint now) {
  if (bells_.Rings(agent, now)) work_.Charge(agent.connection.peer.uid, queues_.ReadDoorbell(agent, now));
}

void Server::ReadMessages(Connection& connection, TimePoint now) {
  const uid_t user = connection.peer.uid;
  for (int i = 0; i < kMaxMessagesPerRound && !connection.closed && !tools_.IsAnswering(connection); ++i) {
    if (work_.IsSpent(user)) return;
    work_.Charge(user, WorkBudget::kRead);
    if (connection.role == ipc::Role::kTool && !tools_.MayAsk(connection, now)) return;
    if (disposer_.IsFull(user) && ipc::NextHasDescriptors(connection.socket.get()))
      return connections_.Close(connection, "descriptors, while too many of its user cannot be closed");
    ipc::Packet packet;
    const DisposeOfDescriptors afterwards{disposer_, user, packet};
    const ipc::Received received = ipc::ReceivePacket(connection.socket.get(), packet);
    if (received == ipc::Received::kNothing) return;
    if (received == ipc::Received::kClosed) {
      connections_.Close(connection, nullptr);
    } else if (received == ipc::Received::kMalformed) {
      connections_.Close(connection, "a malformed message");
    } else if (!HandleMessage(connection, packet, now)) {
      connections_.Close(connection, connection.HasLeft() ? nullptr : "a message that breaks the protocol");
    }
  }
}

bool Server::HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now) {
  if (!connection.role) return handshake_.HandleMessage(connection, packet, now);
  if (packet.fd_count != 0 && packet.header().type != ipc::MessageType::kDeviceFiles) return false;
  if (*connection.role == ipc::Role::kTool) return tools_.HandleMessage(connection, packet, now);
  Agent* agent = agents_.Find(connection.id);
  return agent != nullptr && agents_.HandleMessage(*agent, packet, now);
}

// Does what is due by time alone. Returns when to call it again.
TimePoint Server::Housekeeping(TimePoint now) {
  process_watch_.Check(now);
  disposer_.StartIfNeeded();
  TimePoint next =
      std::min({connections_.CloseUnidentified(now), tools_.CloseUnreading(now), acceptor_.Resume(now),
                service_manager_.KeepAlive(now), process_facts_.Refresh(now), recordings_.Advance(now),
                bells_.Resume(now, [&](uint64_t connection) { return agents_.Find(connection); })});
  if (idle_exit_ && connections_.empty()) {
    const TimePoint exit_at = connections_.idle_since() + *idle_exit_;
    idle_for_long_ = now >= exit_at;
    next = std::min(next, exit_at);
  }
  return next;
}

// What the server read there was not what the client wrote, and what it wrote is not seen.
void Server::CloseTorn() {
  SegmentGuard::TakeTorn([&](uint64_t id) {
    if (Connection* connection = connections_.Find(id))
      connections_.Close(*connection, "pages of its shared memory are missing");
  });
}

void Server::RemoveClosed(TimePoint now) {
  bool any = false;
  connections_.RemoveClosed(now, [&](const Connection& connection) {
    agents_.Remove(connection.id, now);
    recordings_.Remove(connection, now);
    tools_.Remove(connection);
    any = true;
  });
  if (any) tenants_.RemoveEnded(queues_.claims());
}

// A file that is not valid changes nothing. Nor does one that is missing though it was asked for by name.
void Server::HandleHangup(const SignalSender& sender, TimePoint now) {
  if (tenants_path_.empty()) {
    hung_up_ = true;
    return;
  }
  Result<TenantRules> rules = ReadTenantRules(tenants_path_, tenants_must_exist_);
  AuditRecord record;
  record.what = "tenants";
  record.who.pid = sender.pid;
  record.who.uid = sender.uid;
  record.who.is_admin = true;  // the kernel lets only root and our own user send us signals
  record.target = tenants_path_;
  if (rules) {
    record.from = TextOf(tenants_.rules());
    record.to = fmt::format("{}, {}", TextOf(*rules), ChangesIn(tenants_.rules(), *rules));
    tenants_.SetRules(std::move(*rules), agents_, queues_, now);
    tenants_.RemoveEnded(queues_.claims());
  } else {
    record.verdict = Verdict::kRefused;
    record.reason = rules.error().text();
    spdlog::error("{}: the tenants stay as they were", rules.error().text());
  }
  audit_.Add(record, now);
}

// Held queues then run: an agent without a server opens its gates and gives its slices back.
void Server::CloseAllAgents(TimePoint now) {
  queues_.OpenAllGates();
  agents_.ForEach([&](Agent& agent) { connections_.Close(agent.connection, nullptr); });
  RemoveClosed(now);
}

}  // namespace xsched::server
