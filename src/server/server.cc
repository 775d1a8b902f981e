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

constexpr Duration kCheckStoppedEvery = std::chrono::milliseconds(40);
// Who has been heard of since was not stopped.
constexpr Duration kPresumedAlive = std::chrono::milliseconds(20);
constexpr Duration kLogRejectionsEvery = std::chrono::seconds(1);

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
  Round(0);
  while (!stopping_) Round(-1);
  OpenAllGates();
}

void Server::Round(int timeout_ms) {
  epoll_event events[256];
  int count = epoll_wait(epoll_.get(), events, std::size(events), timeout_ms);
  if (count < 0 && errno != EINTR) Fail("cannot wait for events");
  TimePoint now = MonotonicClock::now();
  for (int i = 0; i < count; ++i) HandleEvent(events[i].data.u64, now);
  RemoveClosed(now);
  TimePoint wake_at = Housekeeping(now);
  RemoveClosed(now);
  Decide(now);
  wake_at = std::min({wake_at, decide_at_, WhenToCheckStopped(now)});
  SleepUntil(wake_at);
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
  auto found = connections_.find(tag >> 2);
  if (found == connections_.end() || found->second->closed) return;
  Connection& connection = *found->second;
  connection.heard_at = now;
  if (connection.hints_untold && !TellHints(connection)) return Close(connection, "it cannot be watched");
  if ((tag & 3) == kBell) {
    ReadDoorbell(connection, now);
  } else if (connection.listing) {
    if (!ContinueListing(connection, now)) Close(connection, nullptr);
  } else {
    ReadMessages(connection, now);
  }
}

void Server::Decide(TimePoint now) {
  decide_at_ = scheduler_.Decide(now, *this);
  ++decisions_;
  if (!newly_tracked_.empty()) {
    ObserveNewlyTracked(now);
    decide_at_ = scheduler_.Decide(now, *this);
  }
  SendWakes();
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
    uint64_t id = next_connection_++;
    if (!Watch(socket.get(), EPOLLIN, id << 2 | kSocket)) {
      LogRejection(*peer, "the system watches no more descriptors");
      continue;
    }
    Usage& usage = usage_[peer->uid];
    ++usage.connections;
    ++usage.strangers;
    ++stranger_count_;
    strangers_.push_back(id);
    auto connection = std::make_unique<Connection>();
    connection->socket = std::move(socket);
    connection->peer = std::move(*peer);
    connection->id = id;
    connection->since = connection->heard_at = now;
    connections_.emplace(id, std::move(connection));
  }
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
    if (!HandleHello(connection, packet)) return false;
    --stranger_count_;
    --usage_[connection.peer.uid].strangers;
    return !connection.bell || Watch(connection.bell.get(), EPOLLIN | EPOLLET, connection.id << 2 | kBell);
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

void Server::LogRejection(const Peer& peer, const char* why) {
  ++rejected_;
  ++unlogged_rejections_;
  // Whoever reads our log may be slow, and would then slow us.
  TimePoint now = MonotonicClock::now();
  if (now < log_rejections_at_) return;
  log_rejections_at_ = now + kLogRejectionsEvery;
  spdlog::warn(
      "closed the connection of pid {} (user {}): {}{}", peer.pid, peer.uid, why,
      unlogged_rejections_ > 1 ? fmt::format(" ({} more closed before)", unlogged_rejections_ - 1) : "");
  unlogged_rejections_ = 0;
}

void Server::RemoveClosed(TimePoint now) {
  if (!removal_due_) return;
  removal_due_ = false;
  for (auto next = connections_.begin(); next != connections_.end();) {
    auto current = next++;
    Connection& connection = *current->second;
    if (!connection.closed) continue;
    for (auto& [index, queue] : connection.queues) ForgetQueue(queue, now);
    auto usage = usage_.find(connection.peer.uid);
    if (!connection.role) {
      --usage->second.strangers;
      --stranger_count_;
    }
    if (--usage->second.connections == 0) usage_.erase(usage);
    unreading_.erase(connection.id);
    stopped_ -= connection.stopped;
    // Watches go with their descriptors, but others may hold copies of ours: end them here.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
    if (connection.bell) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.bell.get(), nullptr);
    connections_.erase(current);
  }
  if (connections_.empty()) idle_since_ = now;
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
  if (now >= check_stopped_at_) CheckStopped(now);
  TimePoint wake_at = std::min(DropSilentStrangers(now), DropUnreadingTools(now));
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

// ---- stopped processes ----

TimePoint Server::WhenToCheckStopped(TimePoint now) {
  if (held_ == 0 && stopped_ == 0) {
    check_stopped_at_ = kNever;
  } else if (check_stopped_at_ == kNever) {
    check_stopped_at_ = now + kCheckStoppedEvery;
  }
  return check_stopped_at_;
}

void Server::CheckStopped(TimePoint now) {
  check_stopped_at_ = kNever;
  for (auto& [id, connection] : connections_) {
    if (!connection->stopped && !MakesOthersWait(*connection, now)) continue;
    bool stopped = IsStopped(connection->peer.pid);
    if (stopped == connection->stopped) continue;
    connection->stopped = stopped;
    stopped_ += stopped ? 1 : -1;
    for (auto& [index, queue] : connection->queues) RefreshAbsent(queue, now);
  }
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
