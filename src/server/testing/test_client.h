// Clients of xserver that a test controls, well-behaved or not: agents without a device, and tools.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "ipc/client.h"
#include "ipc/segment.h"

namespace xsched::server::testing {

// Waits until `condition` holds. False: it did not within `timeout`.
bool Eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds timeout = std::chrono::milliseconds(2000));

class TestConnection {
 public:
  // Connects, and sends nothing yet.
  explicit TestConnection(const ipc::SocketPath& path);

  int fd() const { return socket_.get(); }
  bool SendBytes(const void* data, size_t size, const std::vector<int>& fds = {}) {
    return ipc::SendPacket(fd(), data, size, fds.data(), static_cast<int>(fds.size()));
  }
  template <typename T>
  bool Send(const T& message, const std::vector<int>& fds = {}) {
    return ipc::Send(fd(), message, fds.data(), static_cast<int>(fds.size()));
  }
  // The next message that is not kWake; nullopt: the server has closed the connection, or nothing came.
  std::optional<ipc::Packet> Receive(int timeout_ms = 2000);
  // As Receive, for a message of type T only.
  template <typename T>
  std::optional<T> ReceiveA(int timeout_ms = 2000) {
    std::optional<ipc::Packet> packet = Receive(timeout_ms);
    if (!packet || packet->header().type != T::kType) return std::nullopt;
    return packet->As<T>();
  }
  // True if the server has closed it, whatever it sent before.
  bool IsClosedByServer(int timeout_ms = 2000);
  bool IsAlive();
  void Close() { socket_.Reset(); }

 private:
  UniqueFd socket_;
};

ipc::Hello HelloOf(ipc::Role role);

class TestAgent : public TestConnection {
 public:
  // Connects and sends a hello. The answer is welcome().
  explicit TestAgent(const ipc::SocketPath& path);
  // The same with a segment that a former connection used.
  TestAgent(const ipc::SocketPath& path, ipc::OwnedSegment segment, UniqueFd bell);

  const std::optional<ipc::Welcome>& welcome() const { return welcome_; }
  ipc::Segment& segment() { return *segment_.mapping.get(); }
  ipc::ControlBlock& block(uint32_t index) { return segment().blocks[index]; }
  int bell() const { return bell_.get(); }
  int memfd() const { return segment_.memfd.get(); }

  bool CreateQueue(uint32_t index, int32_t priority, uint64_t device = 1);
  // One that can be interrupted, with `traits` (kTrait…).
  bool CreateInterruptibleQueue(uint32_t index, uint32_t traits);
  // One that `message` describes, except for its handle and what hints it leaves out.
  bool Create(ipc::QueueCreated message);
  bool DestroyQueue(uint32_t index);
  // Do to the control block what launching and finishing do, and ring the doorbell.
  void Submit(uint32_t index, uint64_t count = 1);
  void RetireAll(uint32_t index);
  // Reads and discards what the server has sent, as a live agent does all the time.
  void ReadAll();
  // Sets the generation in the handles of queues that are made from now on.
  void SetGeneration(uint32_t generation) { generation_ = generation; }
  bool IsHeld(uint32_t index) { return block(index).gate.load(std::memory_order_acquire) == ipc::kGateHold; }

 private:
  void Greet();

  ipc::OwnedSegment segment_;
  UniqueFd bell_;
  uint32_t generation_ = 0;
  std::optional<ipc::Welcome> welcome_;
};

// Forks a process with a queue of this priority that always has work. Its commands retire one by one until it
// is killed.
pid_t ForkWorkingAgent(const ipc::SocketPath& path, int32_t priority);

class TestTool : public TestConnection {
 public:
  explicit TestTool(const ipc::SocketPath& path);

  const std::optional<ipc::Welcome>& welcome() const { return welcome_; }
  std::optional<ipc::Status> Status();
  // The queues that this user may see; nullopt: no answer.
  std::optional<std::vector<ipc::QueueInfo>> List();
  std::optional<ipc::Reply> SetHints(const ipc::SetHints& request);
  std::optional<ipc::Reply> SetPriority(uint64_t queue_id, int32_t priority);
  std::optional<ipc::Reply> SetPolicy(uint32_t policy, int64_t timeslice_us = 0);

 private:
  std::optional<ipc::Welcome> welcome_;
};

}  // namespace xsched::server::testing
