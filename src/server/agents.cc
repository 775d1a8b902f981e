// What agents say, and what they are told.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "server/limits.h"
#include "server/server.h"

namespace xsched::server {
namespace {

// Longer than any turn: somebody is taken off the device again before it is over.
constexpr Duration kTurnsLast = std::chrono::seconds(1);

bool IsEventFd(int fd) {
  char target[64];
  ssize_t length = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target, sizeof target);
  return std::string_view(target, length < 0 ? 0 : static_cast<size_t>(length)) == "anon_inode:[eventfd]";
}

void Reject(Connection& connection, const std::string& reason) {
  ipc::Rejected message{};
  message.major = ipc::kMajor;
  message.minor = ipc::kMinor;
  reason.copy(message.reason, sizeof message.reason - 1);
  connection.Send(message);
}

// Hands a message about one of its sender's queues to `handle`; false: it has no such queue. One that was
// refused it has, but there is nothing to be done about it.
template <typename Message, typename Handle>
bool ForQueue(Connection& connection, const ipc::Packet& packet, Handle&& handle) {
  auto message = packet.As<Message>();
  if (message.index >= ipc::kMaxQueues) return false;
  if (connection.refused[message.index]) return true;
  auto found = connection.queues.find(message.index);
  return found != connection.queues.end() && handle(found->second, message);
}

}  // namespace

bool Server::HandleHello(Connection& connection, ipc::Packet& packet, TimePoint now) {
  if (packet.header().type != ipc::MessageType::kHello) return false;
  auto hello = packet.As<ipc::Hello>();
  if (hello.major != ipc::kMajor) {
    Reject(connection,
           fmt::format("this server speaks protocol {}.{}, the client {}.{}: update the older one",
                       ipc::kMajor, ipc::kMinor, hello.major, hello.minor));
    return false;
  }
  bool is_agent = hello.role == ipc::Role::kAgent;
  if (!is_agent && hello.role != ipc::Role::kTool) return false;
  if (packet.fd_count != (is_agent ? 2 : 0)) return false;
  if (is_agent) {
    if (!TakeSegment(connection, packet, now)) return false;
    if (hello.job != 0) {
      Job job{connection.peer.uid, hello.job};
      scheduler_.SetJob(sched::ProcessId{connection.id}, jobs_.Join(job));
      connection.job = job;
    }
  }
  connection.role = hello.role;
  connection.name = CleanText(hello.name, sizeof hello.name);
  ipc::Welcome welcome{};
  welcome.major = ipc::kMajor;
  welcome.minor = ipc::kMinor;
  welcome.client_id = connection.id;
  return connection.Send(welcome);
}

bool Server::TakeSegment(Connection& connection, ipc::Packet& packet, TimePoint now) {
  struct stat status {};
  Result<ipc::MappedSegment> segment = ipc::MapSegment(packet.fds[0].get());
  if (!segment || fstat(packet.fds[0].get(), &status) != 0) {
    Reject(connection, segment ? "the segment cannot be looked at" : segment.error().text());
    return false;
  }
  if (!IsEventFd(packet.fds[1].get())) return false;
  // A process that connects anew has left its former connection, though its end may not have come to us yet.
  // What we would still write for that one would hold the new one's queues, and nobody would take it back.
  SegmentIdentity identity{status.st_dev, status.st_ino};
  if (auto former = segments_.find(identity); former != segments_.end()) {
    Remove(*connections_.at(former->second), now);
  }
  segments_.emplace(identity, connection.id);
  connection.segment_identity = identity;
  connection.segment = std::move(*segment);
  connection.bell = std::move(packet.fds[1]);
  packet.fds[0].Reset();
  return true;
}

bool Server::HandleAgentMessage(Connection& connection, const ipc::Packet& packet, TimePoint now) {
  switch (packet.header().type) {
    case ipc::MessageType::kQueueCreated:
      return CreateQueue(connection, packet.As<ipc::QueueCreated>(), now);
    case ipc::MessageType::kQueueDestroyed:
      return DestroyQueue(connection, packet.As<ipc::QueueDestroyed>().index, now);
    case ipc::MessageType::kQueueHints:
      return ForQueue<ipc::QueueHints>(connection, packet, [&](Queue& queue, const ipc::QueueHints& message) {
        if (!IsValid(message.hints)) return false;
        scheduler_.SetHints(queue.id, FromWire(message.hints));
        return true;
      });
    case ipc::MessageType::kQueueConfig:
      return ForQueue<ipc::QueueConfig>(connection, packet,
                                        [](Queue& queue, const ipc::QueueConfig& message) {
                                          if (message.level >= kPreemptLevelMax) return false;
                                          queue.level = message.level;
                                          queue.threshold = message.threshold;
                                          queue.batch_size = message.batch_size;
                                          return true;
                                        });
    case ipc::MessageType::kQueueAbsent:
      return ForQueue<ipc::QueueAbsent>(connection, packet,
                                        [&](Queue& queue, const ipc::QueueAbsent& message) {
                                          queue.absent = message.absent != 0;
                                          RefreshAbsent(queue, now);
                                          return true;
                                        });
    case ipc::MessageType::kTimeslice: {
      auto message = packet.As<ipc::TimesliceHint>();
      if (message.timeslice_us < TIMESLICE_MIN || message.timeslice_us > TIMESLICE_MAX) return false;
      // One figure for everybody: only who may set the policy may set it.
      if (access_.IsAdmin(connection.peer))
        scheduler_.SetTimeslice(std::chrono::microseconds(message.timeslice_us));
      return true;
    }
    case ipc::MessageType::kPing:
      return Answer(connection, packet.As<ipc::Ping>());
    default:
      return SendReply(connection, kXSchedErrorNotSupported, 0, "unknown message");
  }
}

bool Server::CreateQueue(Connection& connection, const ipc::QueueCreated& message, TimePoint now) {
  if (message.index >= ipc::kMaxQueues || message.level == kPreemptLevelUnknown ||
      message.level >= kPreemptLevelMax) {
    return false;
  }
  if (!IsValid(message.hints) || connection.queues.contains(message.index)) return false;
  if (connection.refused[message.index]) return false;
  // The block may have had another queue before: begin from what is taken for granted.
  ipc::WriteWords(connection.segment->blocks[message.index], ipc::kOpenWords);
  Usage& usage = usage_[connection.peer.uid];
  if (usage.queues >= kMaxQueuesOfUser) return RefuseQueue(connection, message.index, usage);
  // Where memory ends, nothing below may be half done. A decision cannot be left in its middle at all.
  newly_tracked_.reserve(queues_.size() + 1);
  Queue queue{};
  queue.id = sched::QueueId{next_queue_++};
  queue.index = message.index;
  queue.level = message.level;
  queue.platform = message.platform;
  queue.traits = message.traits;
  queue.device = message.device;
  queue.handle = message.handle;
  queue.threshold = message.threshold;
  queue.batch_size = message.batch_size;
  queue.device_name = CleanText(message.device_name, sizeof message.device_name);
  queue.connection = &connection;
  Queue& stored = connection.queues.emplace(message.index, std::move(queue)).first->second;
  ++usage.queues;
  queues_.emplace(static_cast<uint64_t>(stored.id), &stored);
  scheduler_.AddQueue(
      stored.id, sched::ProcessId{connection.id}, sched::DeviceId{message.device}, FromWire(message.hints),
      now, message.level == kPreemptLevelInterrupt && (message.traits & ipc::kTraitTimeSlices) != 0);
  RefreshAbsent(stored, now);
  Observe(connection, stored, now);
  return true;
}

// It runs unscheduled, and its client is told once why. It may be the fault of others, so nobody is thrown
// out.
bool Server::RefuseQueue(Connection& connection, uint32_t index, Usage& usage) {
  std::string why = fmt::format("user {} has {} queues already: further ones run unscheduled",
                                connection.peer.uid, kMaxQueuesOfUser);
  if (!std::exchange(usage.refusal_logged, true)) spdlog::warn("{}", why);
  bool told = connection.refused.any();
  connection.refused.set(index);
  return told || SendReply(connection, kXSchedErrorNotAllowed, 0, why);
}

bool Server::DestroyQueue(Connection& connection, uint32_t index, TimePoint now) {
  if (index >= ipc::kMaxQueues) return false;
  if (connection.refused[index]) {
    connection.refused.reset(index);
    return true;
  }
  auto found = connection.queues.find(index);
  // It went while its client was connecting anew.
  if (found == connection.queues.end()) return true;
  ForgetQueue(found->second, now);
  connection.queues.erase(found);
  return true;
}

void Server::ForgetQueue(const Queue& queue, TimePoint now) {
  held_ -= queue.words.held();
  --usage_[queue.connection->peer.uid].queues;
  scheduler_.RemoveQueue(queue.id, now);
  queues_.erase(static_cast<uint64_t>(queue.id));
}

void Server::ReadDoorbell(Connection& connection, TimePoint now) {
  ipc::ForEachDirty(*connection.segment.get(), [&](uint32_t index) {
    auto found = connection.queues.find(index);
    if (found == connection.queues.end()) return;
    ++state_changes_;
    Observe(connection, found->second, now);
  });
}

void Server::Observe(Connection& connection, Queue& queue, TimePoint now) {
  const ipc::Segment& segment = *connection.segment.get();
  const ipc::Progress progress = ipc::ReadProgress(segment.blocks[queue.index]);
  scheduler_.Progress(queue.id, progress.submitted, progress.retired, now);
  scheduler_.Moved(queue.id, progress.moved, now);
  queue.submitted = progress.submitted;
  RestoreControl(queue);

  sched::Dependency dependencies[ipc::kMaxDependencies];
  size_t count = 0;
  ipc::ForEachWait(segment, queue.index, [&](const ipc::Wait& wait) {
    auto owner = connection.queues.find(wait.queue);
    if (owner != connection.queues.end() && ipc::MeansQueue(wait, owner->second.handle))
      dependencies[count++] = {owner->second.id, wait.until};
  });
  if (count != 0 || queue.has_dependencies) scheduler_.SetDependencies(queue.id, {dependencies, count});
  queue.has_dependencies = count != 0;
}

// Another writer may have been at the block, such as a server that hung and went on after its clients had
// left it: that must not hold a queue for good. A client that has left us owns its blocks, though.
void Server::RestoreControl(Queue& queue) {
  ipc::ControlBlock& block = queue.connection->segment->blocks[queue.index];
  if (ipc::HasWords(block, queue.words) || queue.connection->HasLeft()) return;
  ipc::WriteWords(block, queue.words);
  WakeLater(*queue.connection);
}

void Server::RefreshAbsent(const Queue& queue, TimePoint now) {
  const Connection& connection = *queue.connection;
  scheduler_.SetAbsent(queue.id, queue.absent || connection.stopped || connection.silent, now);
}

void Server::SetControl(sched::QueueId id, const sched::Control& control) {
  auto found = queues_.find(static_cast<uint64_t>(id));
  if (found == queues_.end()) return;
  Queue& queue = *found->second;
  Connection& connection = *queue.connection;
  const ipc::SchedulerWords words = ipc::WordsOf(control);
  // The client may have written here; what it was told is what counts.
  const ipc::SchedulerWords told = std::exchange(queue.words, words);
  ipc::WriteWords(connection.segment->blocks[queue.index], words, [&] {
    // An agent that is not awake asks nobody whether we live. So it must be, before the first hold: we may
    // hang right after that (docs/model.md).
    if (told.flags == 0 && words.flags != 0) connection.Send(ipc::Wake{});
  });
  held_ += words.held();
  held_ -= told.held();
  // A gate that closes at level 1 needs no agent: the next launch, or the next gate, sees it.
  bool agent_acts = (queue.traits & ipc::kTraitGatesInLine) == 0 &&
                    (control.run || words.flags != told.flags || queue.level >= kPreemptLevelDeactivate);
  if (agent_acts) WakeLater(connection);
  if (words.tracked() && !told.tracked()) newly_tracked_.push_back(id);
}

void Server::Query(sched::QueueId id) {
  auto found = queues_.find(static_cast<uint64_t>(id));
  if (found == queues_.end()) return;
  Queue& queue = *found->second;
  ipc::AskProgress(queue.connection->segment->blocks[queue.index]);
  RestoreControl(queue);
  WakeLater(*queue.connection);
}

void Server::SetSlice(sched::ProcessId process, sched::DeviceId device, Duration slice) {
  auto found = connections_.find(static_cast<uint64_t>(process));
  if (found == connections_.end()) return;
  if (slice == sched::kNoSlice) turns_until_ = MonotonicClock::now() + kTurnsLast;
  ipc::ProcessSlice message{};
  message.device = static_cast<uint64_t>(device);
  message.slice_us =
      slice == sched::kNoSlice ? ~uint64_t{0} : static_cast<uint64_t>(slice / std::chrono::microseconds(1));
  Connection& connection = *found->second;
  // An older one that was not sent must not be sent after it.
  bool in_order = !connection.unsent_slices.contains(message.device);
  if (!in_order || !connection.Send(message)) RememberSlice(connection, message);
}

// A process must not keep a slice that is not its own any more: it might have the device to itself for 100 ms
// at a stretch, or make no progress at all. So who does not read gets the last one as soon as it does.
void Server::RememberSlice(Connection& connection, const ipc::ProcessSlice& slice) noexcept {
  try {
    connection.unsent_slices[slice.device] = slice.slice_us;
  } catch (const std::bad_alloc&) {
    return Close(connection, "no memory for its time slices");
  }
  if (connection.unsent_slices.size() > kMaxUnsentSlices)
    return Close(connection, "time slices of too many devices left unread");
  if (!WatchSocket(connection, EPOLLIN | EPOLLOUT)) Close(connection, "it cannot be watched");
}

// Its buffer may be full because its process was stopped: then it is answered when it has read.
bool Server::Answer(Connection& connection, const ipc::Ping& ping) {
  ipc::Pong pong{};
  pong.cookie = ping.cookie;
  if (connection.Send(pong)) return true;
  if (++connection.unanswered_pings > kMaxUnansweredPings) return false;
  connection.unsent_pong = ping.cookie;
  return WatchSocket(connection, EPOLLIN | EPOLLOUT);
}

// What the buffer does not take now is sent when there is room. False: that cannot be found out.
bool Server::SendUnsent(Connection& agent) {
  bool sent = SendUnsentSlices(agent) && SendUnsentPong(agent) && SendUnsentHints(agent);
  return WatchSocket(agent, sent ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

bool Server::SendUnsentSlices(Connection& agent) {
  while (!agent.unsent_slices.empty()) {
    auto first = agent.unsent_slices.begin();
    ipc::ProcessSlice message{};
    message.device = first->first;
    message.slice_us = first->second;
    if (!agent.Send(message)) return false;
    agent.unsent_slices.erase(first);
  }
  return true;
}

bool Server::SendUnsentPong(Connection& agent) {
  if (!agent.unsent_pong) return true;
  ipc::Pong pong{};
  pong.cookie = *agent.unsent_pong;
  if (!agent.Send(pong)) return false;
  agent.unsent_pong.reset();
  agent.unanswered_pings = 0;
  return true;
}

void Server::WakeLater(Connection& connection) noexcept {
  if (connection.wake_due) return;
  try {
    wakes_.push_back(connection.id);
    connection.wake_due = true;
  } catch (const std::bad_alloc&) {
    connection.Send(ipc::Wake{});
  }
}

// One per client and round. It may fail: who has not read what came before is awake already, and who has left
// shows that soon.
void Server::SendWakes(TimePoint now) {
  for (uint64_t id : wakes_) {
    auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    Connection& connection = *found->second;
    connection.wake_due = false;
    if (connection.asked_at == kNever || connection.HasReadAll()) connection.asked_at = now;
    connection.Send(ipc::Wake{});
  }
  wakes_.clear();
}

// A queue that was ready before it was tracked did not say so.
void Server::ObserveNewlyTracked(TimePoint now) {
  // Either the client sees the flag that we have just set, or we see what it submitted before it looked.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (sched::QueueId id : newly_tracked_) {
    auto found = queues_.find(static_cast<uint64_t>(id));
    if (found != queues_.end()) Observe(*found->second->connection, *found->second, now);
  }
  newly_tracked_.clear();
}

// The clients would do so themselves when they find us gone: this is sooner.
void Server::OpenAllGates() {
  for (auto& [id, queue] : queues_)
    ipc::WriteWords(queue->connection->segment->blocks[queue->index], ipc::kOpenWords);
}

}  // namespace xsched::server
