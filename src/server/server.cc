#include "server/server.h"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <stdexcept>
#include <utility>

#include "server/limits.h"
#include "server/process_state.h"

namespace xsched::server {
namespace {

// Tags of what is watched; connections use (id << 2 | kind).
enum Kind : uint64_t { kOwn = 0, kSocket = 1, kBell = 2 };
constexpr uint64_t kListenerTag = 0 << 2 | kOwn;
constexpr uint64_t kTimerTag = 1 << 2 | kOwn;
constexpr uint64_t kSignalTag = 2 << 2 | kOwn;

// Others run within 100 ms of a process's stop or hang. A stop is seen within kPresumedAlive and
// kCheckProcessesEvery. A process that hangs or is frozen (which the kernel does not show as stopped) is
// asked within the same time, and found silent after kAnswerWithin: 100 ms at most, and mostly less, for a
// scheduler that others wait for asks after some hundred microseconds.
//
// On a loaded machine an agent may be late without hanging. This costs little: others run beside its queues
// until it is heard of, some milliseconds later.
constexpr Duration kCheckProcessesEvery = std::chrono::milliseconds(20);
// Who has been heard of since was not stopped.
constexpr Duration kPresumedAlive = std::chrono::milliseconds(20);
constexpr Duration kAnswerWithin = std::chrono::milliseconds(60);
constexpr Duration kLogRejectionsEvery = std::chrono::seconds(1);
constexpr Duration kAcceptAgainAfter = std::chrono::milliseconds(100);

[[noreturn]] void Fail(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, strerror(errno)));
}

sched::SchedulerConfig SchedulerConfigOf(const Options& options) {
  sched::SchedulerConfig config;
  config.grace = options.grace;
  config.timeslice = options.timeslice;
  return config;
}

}  // namespace

Server::Server(const Options& options, Listener& listener)
    : listener_(listener),
      access_(geteuid(), FindGroup(options.admin_group)),
      idle_exit_(options.idle_exit),
      scheduler_(SchedulerConfigOf(options)),
      started_(MonotonicClock::now()),
      idle_since_(started_) {
  scheduler_.SetPolicy(*options.policy);
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) Fail("cannot make an epoll");
  timer_.Reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_) Fail("cannot make a timer");
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGHUP);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  signals_.Reset(signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) Fail("cannot take signals");
  if (!Watch(listener_.fd(), EPOLLIN, kListenerTag) || !Watch(timer_.get(), EPOLLIN | EPOLLET, kTimerTag) ||
      !Watch(signals_.get(), EPOLLIN, kSignalTag)) {
    Fail("cannot watch for events");
  }
}

Server::~Server() { OpenAllGates(); }

bool Server::Watch(int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return true;
  return errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

bool Server::WatchSocket(const Connection& connection, uint32_t events) {
  return Watch(connection.socket.get(), events, connection.id << 2 | kSocket);
}

// ---- rounds ----

void Server::Run() {
  constexpr int kMaxFailuresInARow = 3;
  service_.Tell("READY=1");
  Round(0);
  for (int failures = 0; !stopping_;) {
    try {
      Round(-1);
      failures = 0;
    } catch (const std::exception& error) {
      // What the round left undone is not known, so nobody is held by it.
      CloseAllAgents(MonotonicClock::now());
      if (++failures == kMaxFailuresInARow) throw;
      spdlog::error("{}: all clients must connect anew", error.what());
    }
  }
  service_.Tell("STOPPING=1");
}

void Server::Round(int timeout_ms) {
  epoll_event events[256];
  int count = epoll_wait(epoll_.get(), events, std::size(events), timeout_ms);
  if (count < 0 && errno != EINTR) Fail("cannot wait for events");
  TimePoint now = MonotonicClock::now();
  for (int i = 0; i < count; ++i) HandleEventOrClose(events[i].data.u64, now);
  RemoveClosed(now);
  TimePoint wake_at = Housekeeping(now);
  RemoveClosed(now);
  Decide(now);
  wake_at = std::min({wake_at, decide_at_, WhenToCheckProcesses(now)});
  SleepUntil(removal_due_ ? now : wake_at);
}

// Memory may end in the middle of what one client asks for. The others must not feel it.
void Server::HandleEventOrClose(uint64_t tag, TimePoint now) {
  try {
    HandleEvent(tag, now);
  } catch (const std::exception& error) {
    if (Connection* connection = Find(tag)) Close(*connection, error.what());
  }
}

void Server::HandleEvent(uint64_t tag, TimePoint now) {
  if (tag == kListenerTag) return AcceptConnections(now);
  if (tag == kSignalTag) {
    stopping_ = true;
    return;
  }
  if (tag == kTimerTag) {
    timer_at_ = kNever;
    return;
  }
  Connection* found = Find(tag);
  if (found == nullptr || found->closed) return;
  Connection& connection = *found;
  HeardOf(connection, now);
  if (connection.HasUnsent() && !SendUnsent(connection)) return Close(connection, "it cannot be watched");
  if ((tag & 3) == kBell) {
    ReadDoorbell(connection, now);
  } else if (connection.listing) {
    if (!ContinueListing(connection, now)) Close(connection, nullptr);
  } else {
    ReadMessages(connection, now);
  }
}

// Null: of no connection, or of one that is gone.
Connection* Server::Find(uint64_t tag) {
  if ((tag & 3) == kOwn) return nullptr;
  auto found = connections_.find(tag >> 2);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Server::Decide(TimePoint now) {
  decide_at_ = scheduler_.Decide(now, *this);
  ++decisions_;
  if (!newly_tracked_.empty()) {
    ObserveNewlyTracked(now);
    decide_at_ = scheduler_.Decide(now, *this);
  }
  SendWakes(now);
}

// ---- connections ----

void Server::AcceptConnections(TimePoint now) {
  while (UniqueFd socket = listener_.Accept()) {
    std::optional<Peer> peer = PeerOf(socket.get());
    if (!peer) continue;
    if (!MayConnect(*peer)) {
      LogRejection(*peer, "too many connections");
      continue;
    }
    Introduce(std::move(socket), std::move(*peer), now);
  }
  if (!listener_.exhausted()) return;
  // Those who wait cannot even be turned away. Asking again at once would keep a processor busy.
  accept_at_ = now + kAcceptAgainAfter;
  static_cast<void>(Watch(listener_.fd(), 0, kListenerTag));
}

// Where memory ends on the way, the newcomer is gone and nothing else has happened.
void Server::Introduce(UniqueFd socket, Peer peer, TimePoint now) {
  uint64_t id = next_connection_++;
  if (!Watch(socket.get(), EPOLLIN, id << 2 | kSocket)) {
    return LogRejection(peer, "the system watches no more descriptors");
  }
  auto connection = std::make_unique<Connection>();
  connection->socket = std::move(socket);
  connection->peer = std::move(peer);
  connection->id = id;
  connection->since = connection->heard_at = now;
  wakes_.reserve(connections_.size() + 1);
  strangers_.push_back(id);  // an id without a connection is skipped
  Usage& usage = usage_[connection->peer.uid];
  connections_.emplace(id, std::move(connection));
  ++usage.connections;
  ++usage.strangers;
  ++stranger_count_;
}

bool Server::MayConnect(const Peer& peer) {
  if (connections_.size() >= kMaxConnections || stranger_count_ >= kMaxStrangers) return false;
  auto usage = usage_.find(peer.uid);
  return usage == usage_.end() ||
         (usage->second.connections < kMaxConnectionsOfUser && usage->second.strangers < kMaxStrangersOfUser);
}

void Server::ReadMessages(Connection& connection, TimePoint now) {
  for (int i = 0; i < kMaxMessagesPerRound && !connection.closed && !connection.listing; ++i) {
    ipc::Packet packet;
    ipc::Received received = ipc::ReceivePacket(connection.socket.get(), packet);
    if (received == ipc::Received::kNothing) return;
    if (received == ipc::Received::kClosed) {
      Close(connection, nullptr);
    } else if (received == ipc::Received::kMalformed) {
      Close(connection, "a malformed message");
    } else if (!HandleMessage(connection, packet, now)) {
      Close(connection, "a message that breaks the protocol");
    }
    for (UniqueFd& fd : packet.fds) disposer_.Take(std::move(fd));
  }
}

bool Server::HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now) {
  if (!connection.role) {
    return HandleHello(connection, packet, now) &&
           (!connection.bell || Watch(connection.bell.get(), EPOLLIN | EPOLLET, connection.id << 2 | kBell));
  }
  if (packet.fd_count != 0) return false;
  return *connection.role == ipc::Role::kAgent ? HandleAgentMessage(connection, packet, now)
                                               : HandleToolMessage(connection, packet, now);
}

// `why`: what the client did wrong; null: it left.
void Server::Close(Connection& connection, const char* why) {
  if (connection.closed) return;
  connection.closed = true;
  removal_due_ = true;
  if (why != nullptr) LogRejection(connection.peer, why);
}

void Server::LogRejection(const Peer& peer, const char* why) noexcept {
  ++rejected_;
  ++unlogged_rejections_;
  TimePoint now = MonotonicClock::now();
  if (now < log_rejections_at_) return;
  log_rejections_at_ = now + kLogRejectionsEvery;
  try {
    spdlog::warn(
        "closed the connection of pid {} (user {}): {}{}", peer.pid, peer.uid, why,
        unlogged_rejections_ > 1 ? fmt::format(" ({} more closed before)", unlogged_rejections_ - 1) : "");
  } catch (const std::exception&) {
    return;  // no memory: it is counted, and told with the next
  }
  unlogged_rejections_ = 0;
}

void Server::RemoveClosed(TimePoint now) {
  if (!removal_due_) return;
  removal_due_ = false;
  for (auto next = connections_.begin(); next != connections_.end();) {
    auto current = next++;
    Connection& connection = *current->second;
    if (!connection.closed) continue;
    Remove(connection, now);
  }
  if (connections_.empty()) idle_since_ = now;
}

// Destroys `connection`.
void Server::Remove(Connection& connection, TimePoint now) {
  for (auto& [index, queue] : connection.queues) ForgetQueue(queue, now);
  auto usage = usage_.find(connection.peer.uid);
  if (!connection.role) {
    --usage->second.strangers;
    --stranger_count_;
  }
  if (--usage->second.connections == 0) usage_.erase(usage);
  unreading_.erase(connection.id);
  not_running_ -= connection.stopped || connection.silent;
  if (connection.job) {
    jobs_.Leave(*connection.job);
    scheduler_.SetJob(sched::ProcessId{connection.id}, sched::JobId{});
  }
  if (auto segment = segments_.find(connection.segment_identity);
      segment != segments_.end() && segment->second == connection.id) {
    segments_.erase(segment);
  }
  // Watches go with their descriptors, but others may hold copies of ours: end them here.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  if (connection.bell) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.bell.get(), nullptr);
  connections_.erase(connection.id);
}

// What is held goes on: an agent without a server opens its gates and gives its slices back.
void Server::CloseAllAgents(TimePoint now) {
  OpenAllGates();
  for (auto& [id, connection] : connections_) {
    if (connection->role == ipc::Role::kAgent) Close(*connection, nullptr);
  }
  RemoveClosed(now);
}

// ---- time ----

void Server::SleepUntil(TimePoint wake_at) {
  // A timer that is due earlier than needed costs one idle round; setting it each time costs a system call
  // per round.
  if (wake_at == kNever || (timer_at_ != kNever && timer_at_ <= wake_at)) return;
  timer_at_ = wake_at;
  auto since = std::max(wake_at.time_since_epoch(), Duration(1));
  itimerspec when{};
  when.it_value.tv_sec = since / std::chrono::seconds(1);
  when.it_value.tv_nsec = (since % std::chrono::seconds(1)).count();
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

// What time alone makes due. Returns when to look again.
TimePoint Server::Housekeeping(TimePoint now) {
  if (now >= check_processes_at_) CheckProcesses(now);
  disposer_.StartIfNeeded();
  if (now >= accept_at_) {
    accept_at_ = kNever;
    static_cast<void>(Watch(listener_.fd(), EPOLLIN, kListenerTag));
  }
  TimePoint wake_at =
      std::min({DropSilentStrangers(now), DropUnreadingTools(now), accept_at_, service_.KeepAlive(now)});
  if (idle_exit_ && connections_.empty()) {
    if (now >= idle_since_ + *idle_exit_) stopping_ = true;
    wake_at = std::min(wake_at, idle_since_ + *idle_exit_);
  }
  return wake_at;
}

TimePoint Server::DropSilentStrangers(TimePoint now) {
  for (; !strangers_.empty(); strangers_.pop_front()) {
    auto found = connections_.find(strangers_.front());
    if (found == connections_.end() || found->second->role || found->second->closed) continue;
    TimePoint deadline = found->second->since + kHelloTimeout;
    if (now < deadline) return deadline;
    Close(*found->second, "no hello");
  }
  return kNever;
}

TimePoint Server::DropUnreadingTools(TimePoint now) {
  TimePoint wake_at = kNever;
  for (uint64_t id : unreading_) {
    Connection& connection = *connections_.at(id);
    TimePoint deadline = connection.listing->blocked_since + kUnreadTimeout;
    if (now >= deadline) Close(connection, "an answer left unread");
    wake_at = std::min(wake_at, std::max(deadline, now));
  }
  return wake_at;
}

// ---- processes that are stopped, frozen, or hang ----

TimePoint Server::WhenToCheckProcesses(TimePoint now) {
  if (held_ == 0 && not_running_ == 0 && now >= turns_until_) {
    check_processes_at_ = kNever;
  } else if (check_processes_at_ == kNever) {
    check_processes_at_ = now + kCheckProcessesEvery;
  }
  return check_processes_at_;
}

void Server::CheckProcesses(TimePoint now) {
  check_processes_at_ = now + kCheckProcessesEvery;
  for (auto& [id, connection] : connections_) {
    bool was_running = !connection->stopped && !connection->silent;
    if (was_running && !MakesOthersWait(*connection, now)) continue;
    connection->stopped = IsStopped(connection->peer.pid);
    connection->silent = IsSilent(*connection, now);
    bool is_running = !connection->stopped && !connection->silent;
    if (is_running == was_running) continue;
    not_running_ += was_running;
    not_running_ -= is_running;
    RefreshAbsent(*connection, now);
  }
}

// Has a client that others wait for left unread what it was sent, and given no other sign of life? Asks it if
// it was not asked yet.
bool Server::IsSilent(Connection& connection, TimePoint now) {
  if (connection.HasReadAll()) connection.asked_at = kNever;
  for (auto& [index, queue] : connection.queues) {
    uint64_t submitted = queue.submitted;
    Observe(connection, queue, now);
    if (queue.submitted != submitted) connection.asked_at = kNever;
  }
  if (connection.asked_at == kNever) {
    if (!connection.stopped) WakeLater(connection);
    return false;
  }
  TimePoint silent_at = connection.asked_at + kAnswerWithin;
  if (now < silent_at) check_processes_at_ = std::min(check_processes_at_, silent_at);
  return now >= silent_at;
}

void Server::HeardOf(Connection& connection, TimePoint now) {
  connection.heard_at = now;
  connection.asked_at = kNever;
  if (!std::exchange(connection.silent, false) || connection.stopped) return;
  --not_running_;
  RefreshAbsent(connection, now);
}

void Server::RefreshAbsent(const Connection& connection, TimePoint now) {
  for (auto& [index, queue] : connection.queues) RefreshAbsent(queue, now);
}

// Might somebody be held because of this client, whom nobody has heard of for a while?
bool Server::MakesOthersWait(const Connection& connection, TimePoint now) const {
  if (now < connection.heard_at + kPresumedAlive) return false;
  for (auto& [index, queue] : connection.queues) {
    auto stats = scheduler_.Stats(queue.id, now);
    if (stats && stats->state != sched::QueueState::kIdle && stats->control.run) return true;
  }
  return false;
}

}  // namespace xsched::server
