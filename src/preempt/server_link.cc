#include "preempt/server_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "ipc/messages.h"
#include "preempt/process_slices.h"
#include "preempt/xqueue_table.h"

namespace xsched::preempt {
namespace {

// Long enough to cost nothing, short enough to be scheduled again soon after a server's return.
constexpr Duration kRetryEvery = std::chrono::milliseconds(500);
constexpr int kWelcomeTimeoutMs = 1000;
constexpr int kSendTimeoutMs = 200;

ipc::WireHints ToWire(const sched::Hints& hints) {
  return {hints.priority,  hints.utilization,  hints.deadline_us,
          hints.laxity_us, hints.lax_priority, hints.critical_priority};
}

sched::Hints FromWire(const ipc::WireHints& hints) {
  return {hints.priority,  hints.utilization,  hints.deadline_us,
          hints.laxity_us, hints.lax_priority, hints.critical_priority};
}

}  // namespace

bool ServerLink::Connect(const ipc::OwnedSegment& segment, int scheduler_bell) {
  retry_at_ = MonotonicClock::now() + kRetryEvery;
  ipc::SocketPath path = ipc::FindServerSocket();
  Result<UniqueFd> connection = ipc::ConnectToServer(path);
  if (!connection) {
    if (!warned_) {
      XSCHED_WARN("%s; running unscheduled until a server is there (xserver, or xsched run)",
                  connection.error().text());
    }
    warned_ = true;
    return false;
  }
  socket_ = std::move(*connection);
  ipc::Hello hello{};
  hello.major = ipc::kMajor;
  hello.minor = ipc::kMinor;
  hello.role = ipc::Role::kAgent;
  hello.pid = getpid();
  snprintf(hello.name, sizeof hello.name, "%s", program_invocation_short_name);
  const int fds[] = {segment.memfd.get(), scheduler_bell};
  if (!ipc::Send(socket_.get(), hello, fds, 2) || !AwaitWelcome()) {
    Disconnect();
    if (!warned_) XSCHED_WARN("the server at %s did not take this process: running unscheduled", path.text);
    warned_ = true;
    return false;
  }
  if (warned_) XSCHED_INFO("scheduled by the server at %s", path.text);
  warned_ = false;
  return true;
}

bool ServerLink::AwaitWelcome() {
  for (;;) {
    pollfd ready{socket_.get(), POLLIN, 0};
    int count = poll(&ready, 1, kWelcomeTimeoutMs);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    ipc::Packet packet;
    if (ipc::ReceivePacket(socket_.get(), packet) != ipc::Received::kMessage) return false;
    if (packet.header().type == ipc::MessageType::kWelcome) return true;
    if (packet.header().type == ipc::MessageType::kRejected) {
      auto rejected = packet.As<ipc::Rejected>();
      rejected.reason[sizeof rejected.reason - 1] = '\0';
      if (!warned_) XSCHED_WARN("the server refused this process: %s", rejected.reason);
      warned_ = true;
      return false;
    }
  }
}

void ServerLink::Disconnect() {
  socket_.Reset();
  retry_at_ = MonotonicClock::now() + kRetryEvery;
}

bool ServerLink::Receive() {
  for (;;) {
    ipc::Packet packet;
    switch (ipc::ReceivePacket(socket_.get(), packet)) {
      case ipc::Received::kMessage:
        Handle(packet);
        continue;
      case ipc::Received::kNothing:
        return true;
      case ipc::Received::kClosed:
      case ipc::Received::kMalformed:
        XSCHED_WARN("lost the server: running unscheduled until it is back");
        Disconnect();
        return false;
    }
  }
}

void ServerLink::Handle(const ipc::Packet& packet) {
  switch (packet.header().type) {
    case ipc::MessageType::kProcessSlice: {
      auto slice = packet.As<ipc::ProcessSlice>();
      ProcessSlices::Get().Want(slice.device, slice.slice_us);
      break;
    }
    case ipc::MessageType::kQueueHints:
      KeepHints(packet.As<ipc::QueueHints>());
      break;
    case ipc::MessageType::kReply: {
      auto reply = packet.As<ipc::Reply>();
      reply.text[sizeof reply.text - 1] = '\0';
      if (reply.result != kXSchedErrorNotAllowed || warned_of_refusal_) break;
      XSCHED_WARN("the server: %s", reply.text);
      warned_of_refusal_ = true;
      break;
    }
    default:
      break;  // kWake has done its work by waking us; what a newer server says beyond this is ignored
  }
}

// The server schedules by them already; the next one will learn them from us.
void ServerLink::KeepHints(const ipc::QueueHints& message) {
  uint32_t index = XQueueIndex(message.handle);
  if (index >= ipc::kMaxQueues || XQueueHandleAt(index) != message.handle) return;
  // Its slot is not used again before the agent, under whose lock we are, has heard of its end.
  XQueueTable::Slot(index).SetHints(FromWire(message.hints));
}

template <typename T>
bool ServerLink::SendOrDrop(const T& message) {
  if (!connected()) return false;
  // Registering many queues fills the socket's buffer faster than the server empties it.
  if (ipc::SendWithin(socket_.get(), kSendTimeoutMs, message)) return true;
  Disconnect();
  return false;
}

bool ServerLink::QueueCreated(const XQueue& queue) {
  ipc::QueueCreated message{};
  LaunchConfig config = queue.config();
  message.index = queue.index();
  message.level = queue.level();
  message.device = queue.hwq().device;
  message.hints = ToWire(queue.hints());
  message.threshold = config.threshold;
  message.batch_size = config.batch_size;
  message.platform = queue.hwq().ops.platform;
  message.traits = (queue.GatesInLine() ? ipc::kTraitGatesInLine : 0) |
                   (queue.hwq().ops.time_slices ? ipc::kTraitTimeSlices : 0);
  message.handle = queue.handle();
  memcpy(message.device_name, queue.hwq().device_name, sizeof message.device_name);
  return SendOrDrop(message);
}

bool ServerLink::QueueDestroyed(uint32_t index) {
  ipc::QueueDestroyed message{};
  message.index = index;
  return SendOrDrop(message);
}

bool ServerLink::Hints(const XQueue& queue) {
  ipc::QueueHints message{};
  message.index = queue.index();
  message.hints = ToWire(queue.hints());
  return SendOrDrop(message);
}

bool ServerLink::Config(const XQueue& queue) {
  ipc::QueueConfig message{};
  LaunchConfig config = queue.config();
  message.index = queue.index();
  message.level = queue.level();
  message.threshold = config.threshold;
  message.batch_size = config.batch_size;
  return SendOrDrop(message);
}

bool ServerLink::Absent(const XQueue& queue) {
  ipc::QueueAbsent message{};
  message.index = queue.index();
  message.absent = queue.suspended();
  return SendOrDrop(message);
}

bool ServerLink::Timeslice(int64_t timeslice_us) {
  ipc::TimesliceHint message{};
  message.timeslice_us = timeslice_us;
  return SendOrDrop(message);
}

}  // namespace xsched::preempt
