#include "preempt/scheduling/server_client.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/pci_address.h"
#include "ipc/hints.h"
#include "ipc/job.h"
#include "preempt/scheduling/device_files.h"

namespace xsched::preempt {
namespace {

// Long enough to cost nothing, and short enough to be scheduled soon after a server is back.
constexpr Duration kRetryEvery = std::chrono::milliseconds(500);
// A server that hangs may continue. But another server that replaced it would not be found without this
// limit.
constexpr Duration kWelcomePatience = std::chrono::seconds(10);

// So many are read at a time, so that a server that floods us does not keep the agent's lock.
constexpr size_t kMostMessages = 64;

bool HasDeviceFiles(XDevice device) {
  const XDeviceType type = TypeOfDevice(device);
  return type != kDeviceTypeUnknown && type != kDeviceTypeCPU;
}

}  // namespace

void ServerClient::Start(int memfd, int scheduler_bell, TimePoint now) {
  memfd_ = memfd;
  scheduler_bell_ = scheduler_bell;
  place_ = ipc::ReadSocketChoice();
  job_ = ipc::JobOfThisProcess();
  Connect(now);
}

void ServerClient::ConnectIfDue(TimePoint now) {
  if (state_ == State::kApart && now >= retry_at_) Connect(now);
}

void ServerClient::Connect(TimePoint now) {
  Disconnect(now + kRetryEvery);
  ipc::SocketPath path = ipc::FindServerSocket(place_);
  Result<UniqueFd> connection = ipc::ConnectToServer(path);
  if (!connection) {
    if (!warned_) {
      XSCHED_WARN("%s; running unscheduled until a server is there (xserver, or xsched run)",
                  connection.error().text());
    }
    warned_ = true;
    return;
  }
  socket_ = GuardedFd(std::move(*connection));
  if (!SendHello()) {
    Disconnect(now + kRetryEvery);
    return;
  }
  state_ = State::kGreeting;
  welcome_until_ = now + kWelcomePatience;
}

bool ServerClient::SendHello() {
  ipc::Hello hello = ipc::HelloFrom(ipc::Role::kAgent, program_invocation_short_name);
  hello.pid = getpid();
  hello.job = job_;
  const int fds[] = {memfd_, scheduler_bell_};
  return ipc::Send(socket_.get(), hello, fds, 2);
}

void ServerClient::Disconnect(TimePoint retry_at) {
  socket_.Reset();
  outbox_.Clear();
  shows_device_files_ = false;
  shown_count_ = 0;
  introduced_.reset();
  state_ = State::kApart;
  retry_at_ = retry_at;
}

short ServerClient::events() const {
  return static_cast<short>(POLLIN | (outbox_.waiting() != 0 || shows_device_files_ ? POLLOUT : 0));
}

ServerClient::News ServerClient::Serve(TimePoint now) {
  if (state_ == State::kApart) return News::kNone;
  News news = News::kNone;
  // If the program has put another file in the socket's place, it must not be read.
  size_t messages = 0;
  for (bool more = socket_.Intact(); more;) {
    if (messages++ == kMostMessages) return news;
    ipc::Packet packet;
    switch (ipc::ReceivePacket(socket_.get(), packet)) {
      case ipc::Received::kMessage:
        heartbeat_.Heard();
        if (const News told = Handle(packet, now); told != News::kNone) news = told;
        if (news == News::kLost) return news;
        continue;
      case ipc::Received::kNothing:
        if (const size_t waiting = outbox_.waiting()) {
          if (!outbox_.Flush(socket_.get())) break;
          if (outbox_.waiting() < waiting) heartbeat_.Heard();  // it has made room
        }
        if (shows_device_files_) ShowDeviceFiles();
        if (state_ == State::kConnected || now < welcome_until_) return news;
        break;
      case ipc::Received::kClosed:
      case ipc::Received::kMalformed:
        break;
    }
    more = false;
  }
  const bool was_connected = state_ == State::kConnected;
  Disconnect(now + kRetryEvery);
  if (was_connected) {
    XSCHED_WARN("lost the server: running unscheduled until it is back");
  } else if (!warned_) {
    XSCHED_WARN("the server at %s did not take this process: running unscheduled",
                ipc::FindServerSocket(place_).text);
  }
  warned_ = true;
  return News::kLost;
}

bool ServerClient::Beat(bool taken, TimePoint now) {
  if (state_ != State::kConnected) return true;
  switch (heartbeat_.Look(taken, now)) {
    case Heartbeat::Verdict::kFine:
      return true;
    case Heartbeat::Verdict::kAsk: {
      ipc::Ping ping{};
      ping.cookie = ++pings_;
      return SendOrDrop(ping);
    }
    case Heartbeat::Verdict::kHangs:
      break;
  }
  XSCHED_WARN("the server does not answer: running unscheduled until it does");
  warned_ = true;
  // Connect again at once: if the server continues, it finds our connection.
  Disconnect(now);
  return false;
}

TimePoint ServerClient::wake_at() const {
  switch (state_) {
    case State::kApart:
      return retry_at_;
    case State::kGreeting:
      return welcome_until_;
    case State::kConnected:
      return heartbeat_.next();
  }
  return kNever;
}

ServerClient::News ServerClient::Refused(const ipc::Packet& packet, TimePoint now) {
  const auto rejected = packet.As<ipc::Rejected>();
  if (!warned_) XSCHED_WARN("the server refused this process: %s", rejected.reason);
  warned_ = true;
  Disconnect(now + kRetryEvery);
  return News::kLost;
}

ServerClient::News ServerClient::Handle(const ipc::Packet& packet, TimePoint now) {
  const bool greeting = state_ == State::kGreeting;
  switch (packet.header().type) {
    case ipc::MessageType::kWelcome:
      if (!greeting) break;
      state_ = State::kConnected;
      server_minor_ = packet.As<ipc::Welcome>().minor;
      if (warned_) XSCHED_INFO("scheduled by the server at %s", ipc::FindServerSocket(place_).text);
      warned_ = false;
      return News::kWelcomed;
    case ipc::MessageType::kRejected:
      if (!greeting) break;
      return Refused(packet, now);
    case ipc::MessageType::kProcessSlice: {
      auto slice = packet.As<ipc::ProcessSlice>();
      listener_.OnSlice(slice.device, slice.slice_us);
      break;
    }
    case ipc::MessageType::kQueueHints:
      listener_.OnHints(packet.As<ipc::QueueHints>());
      break;
    case ipc::MessageType::kQueueConfig: {
      const auto config = packet.As<ipc::QueueConfig>();
      listener_.OnConfig(config.handle, config.level, {config.threshold, config.batch_size});
      break;
    }
    case ipc::MessageType::kTenantMemory:
      if (packet.fd_count != 1) break;
      listener_.OnTenantMemory(packet.fds[0].get(), packet.As<ipc::TenantMemory>().slot);
      break;
    case ipc::MessageType::kReply: {
      const auto reply = packet.As<ipc::Reply>();
      if (reply.result == kXSchedErrorInvalidValue) XSCHED_WARN("the server: %s", reply.text);
      if (reply.result != kXSchedErrorNotAllowed || warned_of_refusal_) break;
      XSCHED_WARN("the server: %s", reply.text);
      warned_of_refusal_ = true;
      break;
    }
    default:
      break;  // kWake has done its work by waking us; what a newer server says beyond this is ignored
  }
  return News::kNone;
}

template <typename T>
bool ServerClient::SendOrDrop(const T& message) {
  if (!connected()) return false;
  if (socket_.Intact() && outbox_.Send(socket_.get(), message)) return true;
  Disconnect(TimePoint{});  // and at once anew, with all that the server does not know now
  return false;
}

// By then the driver has opened what it needs for the device. To look through all descriptors for each stream
// that a program makes would take long.
void ServerClient::ShowAccessTo(XDevice device) {
  const auto end = shown_.begin() + std::min(shown_count_, shown_.size());
  if (!HasDeviceFiles(device) || std::find(shown_.begin(), end, device) != end) return;
  ShowDeviceFiles();
  shown_[shown_count_++ % shown_.size()] = device;
}

// The program may have replaced a file since it was found: the server looks at what it gets.
void ServerClient::ShowDeviceFiles() {
  constexpr uint16_t kTakesDeviceFiles = 7;  // this minor and later ones
  shows_device_files_ = false;
  if (!connected() || server_minor_ < kTakesDeviceFiles || !socket_.Intact()) return;
  int fds[kMostDeviceFiles];
  const size_t count = FindDeviceFiles(fds);
  if (count == 0 || ipc::Send(socket_.get(), ipc::DeviceFiles{}, fds, static_cast<int>(count))) return;
  // There is no room for now, or the program has just closed one of them.
  shows_device_files_ =
      errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS || errno == EBADF;
}

bool ServerClient::QueueCreated(const XQueue& queue) {
  if (introduced_[queue.index()]) return true;
  introduced_[queue.index()] = true;
  ShowAccessTo(queue.hwq().device);
  auto message = ipc::QueueCreatedFrom(queue, queue.config());
  message.traits = (queue.state().has_device_gates() ? ipc::kTraitDeviceGates : 0) |
                   (queue.hwq().ops.time_slices ? ipc::kTraitTimeSlices : 0) |
                   (queue.hwq().ops.runs_beside_others ? ipc::kTraitRunsBesideOthers : 0) |
                   (queue.state().ReportsOverruns() ? ipc::kTraitReportsOverruns : 0);
  return SendOrDrop(message);
}

bool ServerClient::Commit(TimePoint) { return (events() & POLLOUT) != 0; }

bool ServerClient::QueueDestroyed(const XQueue& queue) {
  const uint32_t index = queue.index();
  if (!introduced_[index]) return true;
  introduced_[index] = false;
  ipc::QueueDestroyed message{};
  message.index = index;
  return SendOrDrop(message);
}

bool ServerClient::Hints(const XQueue& queue) {
  if (!introduced_[queue.index()]) return true;
  ipc::QueueHints message{};
  message.index = queue.index();
  ipc::SetHintsIn(message, queue.hints());
  return SendOrDrop(message);
}

bool ServerClient::Config(const XQueue& queue) {
  if (!introduced_[queue.index()]) return true;
  return SendOrDrop(ipc::QueueConfigFrom(queue, queue.config()));
}

bool ServerClient::Absent(const XQueue& queue) {
  if (!introduced_[queue.index()]) return true;
  ipc::QueueAbsent message{};
  message.index = queue.index();
  message.absent = queue.suspended();
  return SendOrDrop(message);
}

bool ServerClient::Timeslice(int64_t timeslice_us) {
  ipc::TimesliceHint message{};
  message.timeslice_us = timeslice_us;
  return SendOrDrop(message);
}

bool ServerClient::AtATime(size_t queues) {
  ipc::KDeadlineHint message{};
  message.at_a_time = static_cast<uint32_t>(queues);
  return SendOrDrop(message);
}

bool ServerClient::JoinJob(uint64_t number) {
  constexpr uint16_t kUnitesJobs = 8;  // this minor and later ones
  if (server_minor_ < kUnitesJobs) return true;
  ipc::JoinJob message{};
  message.number = number;
  return SendOrDrop(message);
}

void ServerClient::ForgetAfterFork() {
  Disconnect(TimePoint{});
  warned_ = false;
}

}  // namespace xsched::preempt
