#include "server/testing/test_client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <stdexcept>

#include "base/clock.h"
#include "base/handle.h"
#include "ipc/testing/populated_segment.h"

namespace xsched::server::testing {

bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds timeout) {
  TimePoint deadline = MonotonicClock::now() + timeout;
  while (!condition()) {
    if (MonotonicClock::now() > deadline) return false;
    usleep(200);
  }
  return true;
}

TestConnection::TestConnection(const ipc::SocketPath& path) {
  Result<UniqueFd> socket = ipc::ConnectToServer(path);
  if (!socket) throw std::runtime_error(socket.error().text());
  socket_ = std::move(*socket);
}

std::optional<ipc::Packet> TestConnection::Receive(int timeout_ms) {
  TimePoint deadline = MonotonicClock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    ipc::Packet packet;
    switch (ipc::ReceivePacket(fd(), packet)) {
      case ipc::Received::kMessage:
        if (packet.header().type == ipc::MessageType::kWake) continue;
        return packet;
      case ipc::Received::kNothing: {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock::now());
        pollfd ready{fd(), POLLIN, 0};
        if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) return std::nullopt;
        continue;
      }
      case ipc::Received::kClosed:
      case ipc::Received::kMalformed:
        return std::nullopt;
    }
  }
}

bool TestConnection::IsClosedByServer(int timeout_ms) {
  TimePoint deadline = MonotonicClock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    ipc::Packet packet;
    ipc::Received received = ipc::ReceivePacket(fd(), packet);
    if (received == ipc::Received::kClosed) return true;
    if (received != ipc::Received::kNothing) continue;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock::now());
    pollfd ready{fd(), POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) return false;
  }
}

bool TestConnection::IsAlive() {
  ipc::Ping ping{};
  ping.cookie = 0x1234;
  // After many messages, the socket's buffer may be full at this moment.
  if (!ipc::SendWithin(fd(), 2000, ping)) return false;
  auto pong = ReceiveA<ipc::Pong>();
  return pong && pong->cookie == ping.cookie;
}

ipc::Hello HelloOf(ipc::Role role) {
  ipc::Hello hello = ipc::HelloFrom(role, "test-client");
  hello.pid = getpid();
  return hello;
}

TestAgent::TestAgent(const ipc::SocketPath& path)
    : TestAgent(path, ipc::PopulatedSegment(), UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))) {}

TestAgent::TestAgent(const ipc::SocketPath& path, ipc::OwnedSegment segment, UniqueFd bell)
    : TestConnection(path), segment_(std::move(segment)), bell_(std::move(bell)) {
  Greet();
}

void TestAgent::Greet() {
  if (Send(HelloOf(ipc::Role::kAgent), {memfd(), bell()})) welcome_ = ReceiveA<ipc::Welcome>();
}

bool TestAgent::CreateQueue(uint32_t index, int32_t priority, uint64_t device) {
  ipc::QueueCreated message{};
  message.index = index;
  message.level = kPreemptLevelBlock;
  message.device = device;
  message.hints.priority = priority;
  return Create(message);
}

bool TestAgent::CreateInterruptibleQueue(uint32_t index, uint32_t traits) {
  ipc::QueueCreated message{};
  message.index = index;
  message.level = kPreemptLevelInterrupt;
  message.device = 1;
  message.traits = traits;
  return Create(message);
}

bool TestAgent::Create(ipc::QueueCreated message) {
  if (message.index < ipc::kMaxQueues) {
    block(message.index).gate.store(ipc::kGateRun, std::memory_order_relaxed);
  }
  message.hints.utilization = UTILIZATION_DEFAULT;
  message.hints.deadline_us = NO_DEADLINE;
  message.hints.laxity_us = NO_LAXITY;
  message.handle = PackHandle(/*kind=*/0, generation_, message.index);
  snprintf(message.device_name, sizeof message.device_name, "device %llu",
           static_cast<unsigned long long>(message.device));
  return ipc::SendWithin(fd(), 2000, message);
}

bool TestAgent::DestroyQueue(uint32_t index) {
  ipc::QueueDestroyed message{};
  message.index = index;
  return ipc::SendWithin(fd(), 2000, message);
}

void TestAgent::Submit(uint32_t index, uint64_t count) {
  block(index).submitted.fetch_add(count, std::memory_order_release);
  ipc::RingScheduler(segment(), index, bell());
}

void TestAgent::RetireAll(uint32_t index) {
  uint64_t submitted = block(index).submitted.load(std::memory_order_relaxed);
  block(index).retired.store(submitted, std::memory_order_release);
  ipc::RingScheduler(segment(), index, bell());
}

void TestAgent::ReadAll() {
  ipc::Packet packet;
  while (ipc::ReceivePacket(fd(), packet) == ipc::Received::kMessage) {
  }
}

pid_t ForkWorkingAgent(const ipc::SocketPath& path, int32_t priority) {
  const pid_t child = fork();
  if (child != 0) return child;
  TestAgent agent(path);
  agent.CreateQueue(0, priority);
  agent.Submit(0);
  for (;;) {
    agent.block(0).submitted.fetch_add(1);
    agent.block(0).retired.fetch_add(1);
    ipc::RingScheduler(agent.segment(), 0, agent.bell());
    agent.ReadAll();
    usleep(5000);
  }
}

TestTool::TestTool(const ipc::SocketPath& path) : TestConnection(path) {
  if (Send(HelloOf(ipc::Role::kTool))) welcome_ = ReceiveA<ipc::Welcome>();
}

std::optional<ipc::Status> TestTool::Status() {
  if (!Send(ipc::GetStatus{})) return std::nullopt;
  return ReceiveA<ipc::Status>();
}

std::optional<std::vector<ipc::QueueInfo>> TestTool::List() {
  if (!Send(ipc::List{})) return std::nullopt;
  std::vector<ipc::QueueInfo> queues;
  for (;;) {
    std::optional<ipc::Packet> packet = Receive();
    if (!packet) return std::nullopt;
    if (packet->header().type == ipc::MessageType::kReply) {
      if (packet->As<ipc::Reply>().count != queues.size()) return std::nullopt;
      return queues;
    }
    queues.push_back(packet->As<ipc::QueueInfo>());
  }
}

std::optional<ipc::Reply> TestTool::SetHints(const ipc::SetHints& request) {
  if (!Send(request)) return std::nullopt;
  return ReceiveA<ipc::Reply>();
}

std::optional<ipc::Reply> TestTool::SetPriority(uint64_t queue_id, int32_t priority) {
  ipc::SetHints request{};
  request.queue_id = queue_id;
  request.mask = ipc::kHintPriority;
  request.hints.priority = priority;
  return SetHints(request);
}

std::optional<ipc::Reply> TestTool::SetPolicy(uint32_t policy, int64_t timeslice_us) {
  ipc::SetPolicy request{};
  request.policy = policy;
  request.timeslice_us = timeslice_us;
  if (!Send(request)) return std::nullopt;
  return ReceiveA<ipc::Reply>();
}

}  // namespace xsched::server::testing
