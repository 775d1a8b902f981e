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
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  signals_.Reset(signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) Fail("cannot take signals");
  Watch(listener_.fd(), EPOLLIN, kListenerTag);
  Watch(timer_.get(), EPOLLIN | EPOLLET, kTimerTag);
  Watch(signals_.get(), EPOLLIN, kSignalTag);
}

void Server::Watch(int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) Fail("cannot watch a descriptor");
}

void Server::Run() {
  epoll_event events[256];
  SleepUntil(Housekeeping(started_));
  while (!stopping_) {
    int count = epoll_wait(epoll_.get(), events, std::size(events), -1);
    if (count < 0 && errno != EINTR) Fail("cannot wait for events");
    TimePoint now = MonotonicClock::now();
    for (int i = 0; i < count; ++i) HandleEvent(events[i].data.u64, now);
    RemoveClosed(now);
    TimePoint wake_at = scheduler_.Decide(now, *this);
    ++decisions_;
    SleepUntil(std::min(wake_at, Housekeeping(now)));
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
  auto found = connections_.find(tag >> 2);
  if (found == connections_.end() || found->second->closed) return;
  Connection& connection = *found->second;
  if ((tag & 3) == kBell) {
    ReadDoorbell(connection, now);
  } else {
    ReadMessages(connection, now);
  }
}

void Server::AcceptConnections(TimePoint now) {
  while (UniqueFd socket = listener_.Accept()) {
    std::optional<Peer> peer = PeerOf(socket.get());
    if (!peer) continue;
    if (connections_of_[peer->uid] >= kMaxConnectionsOfUser || connections_.size() >= kMaxConnections) {
      ++rejected_;
      spdlog::warn("turned pid {} of user {} away: too many connections", peer->pid, peer->uid);
      continue;
    }
    auto connection = std::make_unique<Connection>();
    connection->socket = std::move(socket);
    connection->peer = std::move(*peer);
    connection->id = next_connection_++;
    connection->since = now;
    ++connections_of_[connection->peer.uid];
    Watch(connection->socket.get(), EPOLLIN, connection->id << 2 | kSocket);
    connections_.emplace(connection->id, std::move(connection));
  }
}

void Server::ReadMessages(Connection& connection, TimePoint now) {
  // A bounded number per round: one client's stream must not hold up the others.
  for (int i = 0; i < 64 && !connection.closed; ++i) {
    ipc::Packet packet;
    switch (ipc::ReceivePacket(connection.socket.get(), packet)) {
      case ipc::Received::kNothing:
        return;
      case ipc::Received::kClosed:
        Close(connection, nullptr);
        return;
      case ipc::Received::kMalformed:
        Close(connection, "a malformed message");
        return;
      case ipc::Received::kMessage:
        break;
    }
    bool accepted;
    if (!connection.role) {
      accepted = HandleHello(connection, packet);
      if (accepted && connection.bell)
        Watch(connection.bell.get(), EPOLLIN | EPOLLET, connection.id << 2 | kBell);
    } else if (packet.fd_count != 0) {
      accepted = false;
    } else if (*connection.role == ipc::Role::kAgent) {
      accepted = HandleAgentMessage(connection, packet, now);
    } else {
      accepted = HandleToolMessage(connection, packet, now);
    }
    if (!accepted && !connection.closed) Close(connection, "a message that breaks the protocol");
  }
}

// `why`: what the client did wrong; null: it left.
void Server::Close(Connection& connection, const char* why) {
  if (connection.closed) return;
  connection.closed = true;
  removal_due_ = true;
  if (why == nullptr) return;
  ++rejected_;
  spdlog::warn("closed the connection of pid {} (user {}): {}", connection.peer.pid, connection.peer.uid,
               why);
}

void Server::RemoveClosed(TimePoint now) {
  if (!removal_due_) return;
  removal_due_ = false;
  for (auto next = connections_.begin(); next != connections_.end();) {
    auto current = next++;
    Connection& connection = *current->second;
    if (!connection.closed) continue;
    for (auto& [index, queue] : connection.queues) ForgetQueue(queue, now);
    auto count = connections_of_.find(connection.peer.uid);
    if (--count->second == 0) connections_of_.erase(count);
    // Watches go with their descriptors, but others may hold copies of ours: end them here.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
    if (connection.bell) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.bell.get(), nullptr);
    connections_.erase(current);
  }
  if (connections_.empty()) idle_since_ = now;
}

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
  TimePoint wake_at = kNever;
  for (auto& [id, connection] : connections_) {
    if (connection->role || connection->closed) continue;
    TimePoint deadline = connection->since + kHelloTimeout;
    if (now >= deadline) Close(*connection, "no hello");
    wake_at = std::min(wake_at, std::max(deadline, now));
  }
  bool any_stopped = false;
  for (auto& [id, connection] : connections_) any_stopped |= connection->stopped;
  if (held_ == 0 && !any_stopped) {
    check_stopped_at_ = kNever;
  } else if (check_stopped_at_ == kNever) {
    check_stopped_at_ = now + kCheckStoppedEvery;
  } else if (now >= check_stopped_at_) {
    CheckStopped(now);
    check_stopped_at_ = now + kCheckStoppedEvery;
    wake_at = now;  // decide with what was found
  }
  wake_at = std::min(wake_at, check_stopped_at_);
  if (idle_exit_ && connections_.empty()) {
    if (now >= idle_since_ + *idle_exit_) stopping_ = true;
    wake_at = std::min(wake_at, idle_since_ + *idle_exit_);
  }
  return wake_at;
}

void Server::CheckStopped(TimePoint now) {
  for (auto& [id, connection] : connections_) {
    if (connection->queues.empty()) continue;
    bool stopped = IsStopped(connection->peer.pid);
    if (stopped == connection->stopped) continue;
    connection->stopped = stopped;
    for (auto& [index, queue] : connection->queues) RefreshAbsent(queue, now);
  }
}

}  // namespace xsched::server
