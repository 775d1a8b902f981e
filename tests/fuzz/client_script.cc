#include "fuzz/client_script.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/explain/process_waits.h"
#include "cli/platform.h"
#include "cli/record/recording_writer.h"
#include "cli/server_session.h"
#include "fuzz/any_message.h"
#include "fuzz/bytes.h"
#include "ipc/control_block.h"
#include "ipc/testing/packet_of.h"
#include "preempt/queue/testing/fake_process.h"
#include "preempt/scheduling/agent.h"
#include "server/http/scheduler_client.h"
#include "server/tenants/tenant_memory.h"
#include "server/testing/server_process.h"

// Nothing here is about what only one platform has.
namespace xsched::cli {
const Platform* FindPlatform(uint32_t) { return nullptr; }
}  // namespace xsched::cli

namespace xsched::fuzz {
namespace {

using std::chrono::milliseconds;

// A socket of a server. Clients that begin from now on find it.
class Listener {
 public:
  Listener() : path_(folder_.path() + "/s"), socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    setenv("XSCHED_SOCKET", path_.c_str(), 1);
  }
  void Listen() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(socket_.get(), 8) != 0)
      abort();
  }
  UniqueFd Accept() const {
    return UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }
  bool HasConnection() const {
    pollfd ready{socket_.get(), POLLIN, 0};
    return poll(&ready, 1, 0) == 1;
  }
  // Accept returns an empty descriptor from now on.
  void Stop() const { shutdown(socket_.get(), SHUT_RDWR); }
  const std::string& path() const { return path_; }

 private:
  server::testing::TempFolder folder_;
  const std::string path_;
  const UniqueFd socket_;
};

// Mostly ours: the inputs that are kept stay as good when our number goes up.
uint16_t AnyMinor(Bytes& bytes) {
  switch (bytes.Below(8)) {
    case 0:
      return static_cast<uint16_t>(bytes.Below(ipc::kMinor));
    case 1:
      return ipc::kMinor + 1;
    default:
      return ipc::kMinor;
  }
}

}  // namespace

// A process with three queues, and its agent. The script is its thread, its driver and its clock.
class ClientScript::Process final : public preempt::testing::FakeProcess {
 public:
  Process() {
    XProcessOps ops{};
    ops.size = sizeof ops;
    ops.set_slice = [](XDevice, uint64_t) { return kXSchedSuccess; };
    ops.refresh = [] {};
    ops.settle = [] { return true; };
    slices_.Use(ops);
    // Nobody listens yet, so that it does not wait for a welcome, which this thread would have to send.
    if (!limit_.Open(nullptr, ipc::kNoMemoryLimit)) abort();
    if (!agent_.Start({.scheduler = kSchedulerGlobal})) abort();
    for (Driver& driver : drivers_) {
      Make(driver, driver.ops.max_level);
      agent_.QueueCreated(*driver.queue);
    }
    listener_.Listen();
  }
  ~Process() override {
    agent_.Shutdown();
    TearDown();
  }
  void TestBody() override {}

  void Run(Bytes& bytes) {
    Connect();
    if (bytes.Below(8) != 0) Welcome(bytes);
    while (!bytes.empty()) Step(bytes);
    peer_.Reset();
    Attend(milliseconds(1));
    ExpectNothingIsHeld();
  }

 private:
  using Driver = preempt::testing::FakeDriver;
  static constexpr XDevice kAnyDevice = 7;

  class NoThread final : public preempt::AgentThread {
   public:
    int Start(Work& what) override {
      work = &what;
      return 0;
    }
    Work* work = nullptr;
  };

  // FakeProcess
  ipc::ControlBlock* ResetBlock(uint32_t index) override { return memory_.ResetBlock(index); }
  void RingScheduler(uint32_t index) override { agent_.RingScheduler(index); }
  void Wake() override { agent_.Wake(); }
  void SomethingIsTaken() override { agent_.SomethingIsTaken(); }
  bool GiveBackLater() override { return agent_.GiveBackLater(); }
  void QueueDestroyed(preempt::XQueue& queue) override { agent_.QueueDestroyed(queue); }

  void Attend(Duration later) {
    preempt::testing::fake_now += later;
    thread_.work->Attend(preempt::testing::fake_now);
    thread_.work->WhatToAwait();
  }

  void Connect() {
    Attend(std::chrono::seconds(1));
    if (listener_.HasConnection()) peer_ = listener_.Accept();
  }
  void Welcome(Bytes& bytes) {
    ipc::Welcome welcome{};
    welcome.major = ipc::kMajor;
    welcome.minor = AnyMinor(bytes);
    switch (bytes.Below(4)) {
      case 0:
        break;
      case 1:
        SendTenantMemory(/*is_right=*/false);
        break;
      default:
        SendTenantMemory(/*is_right=*/true);
    }
    ipc::Send(peer_.get(), welcome);
    Attend(milliseconds(1));
  }
  // Of a new account, or of something else.
  void SendTenantMemory(bool is_right) {
    ipc::TenantMemory message{};
    message.slot = is_right ? account_->TakeSlot().value_or(ipc::kMaxMemoryProcesses) : 0;
    const int memfd = is_right ? account_->memfd() : memory_.memfd();
    ipc::Send(peer_.get(), message, &memfd, 1);
    if (message.slot < ipc::kMaxMemoryProcesses && is_right) account_->FreeSlot(message.slot);
  }
  // The program allocates, and frees half of it.
  void Allocate(uint64_t size) {
    if (limit_.Take(limit_.Device(kAnyDevice), size)) limit_.GiveBack(limit_.Device(kAnyDevice), size / 2);
    limit_.Left(limit_.Device(kAnyDevice));
  }

  void Step(Bytes& bytes) {
    Driver& driver = drivers_[bytes.Below(std::size(drivers_))];
    preempt::XQueue& queue = *driver.queue;
    switch (bytes.Below(15)) {
      case 0:
        return Attend(milliseconds(bytes.Below(100)));
      case 1: {
        const ipc::Packet packet = AnyMessage(bytes);
        ipc::SendPacket(peer_.get(), packet.bytes, packet.size);
        return Attend(milliseconds(1));
      }
      case 2: {
        ipc::ProcessSlice slice{};
        slice.device = bytes.Below(2) == 0 ? queue.hwq().device : bytes.Next<uint64_t>();
        slice.slice_us = bytes.Below(2) == 0 ? bytes.Below(4) : bytes.Next<uint64_t>();
        ipc::Send(peer_.get(), slice);
        return Attend(milliseconds(1));
      }
      case 3: {
        ipc::QueueHints hints{};
        hints.handle = bytes.Below(4) != 0 ? queue.handle() : bytes.Next<uint64_t>();
        bytes.Fill(&hints.hints, sizeof hints.hints);
        bytes.Fill(&hints.more_hints, sizeof hints.more_hints);
        ipc::Send(peer_.get(), hints);
        return Attend(milliseconds(1));
      }
      case 4: {
        ipc::QueueConfig config{};
        config.handle = bytes.Below(4) != 0 ? queue.handle() : bytes.Next<uint64_t>();
        config.level = bytes.Below(6);
        config.threshold = bytes.Below(2) == 0 ? bytes.Below(8) : bytes.Next<int64_t>();
        config.batch_size = bytes.Below(2) == 0 ? bytes.Below(8) : bytes.Next<int64_t>();
        ipc::Send(peer_.get(), config);
        return Attend(milliseconds(1));
      }
      case 5: {
        queue.block().gate = bytes.Below(2) == 0 ? ipc::kGateHold : bytes.Next<uint16_t>();
        return Attend(milliseconds(1));
      }
      case 6:
        queue.block().flags = bytes.Next<uint16_t>();
        return Attend(milliseconds(1));
      case 7:
        return WriteAnywhere(bytes);
      case 8:
        Allocate(driver.next);
        return Launch(driver, static_cast<int>(1 + bytes.Below(4)));
      case 9:
        return Launch(driver, static_cast<int>(1 + bytes.Below(4)));
      case 10:
        return FakeProcess::Run(driver, static_cast<int>(bytes.Below(8)));
      case 11:
        SetPriority(queue, static_cast<Priority>(bytes.Below(8)));
        agent_.HintsChanged(queue);
        return ReadAll();
      case 13:
        // The server does not read for a while.
        for (uint32_t i = bytes.Below(8) * 100; i > 0; --i) agent_.HintsChanged(queue);
        Attend(milliseconds(1));
        ReadAll();
        return Attend(milliseconds(1));
      case 12:
        agent_.SetTimeslice(bytes.Below(200));
        agent_.SetAtATime(bytes.Below(4));
        return agent_.ConfigChanged(queue);
      default:
        peer_.Reset();
        Connect();
        return Welcome(bytes);
    }
  }

  // The server may write to all of the memory that it shares with the process.
  void WriteAnywhere(Bytes& bytes) {
    auto* start = reinterpret_cast<unsigned char*>(&memory_.segment());
    const size_t at = bytes.Below(2) == 0 ? offsetof(ipc::Segment, blocks) +
                                                bytes.Below(3 * sizeof(ipc::ControlBlock) / 8) * 8
                                          : bytes.Next<uint32_t>() % (ipc::kSegmentSize / 8) * 8;
    const uint64_t value = bytes.Below(2) == 0 ? bytes.Below(8) : bytes.Next<uint64_t>();
    memcpy(start + at, &value, sizeof value);
    Attend(milliseconds(1));
  }

  // As a server does. Some say so if it does not.
  void ReadAll() const {
    ipc::Packet packet;
    while (ipc::ReceivePacket(peer_.get(), packet) == ipc::Received::kMessage) {
    }
  }

  void ExpectNothingIsHeld() {
    for (Driver& driver : drivers_) {
      if (driver.queue->block().gate != ipc::kGateRun) abort();
      FakeProcess::Run(driver);
      if (driver.next != driver.items.size()) abort();
      driver.items.clear();
      driver.ran.clear();
      driver.calls.clear();
      driver.next = 0;
    }
    if (slices_.AnyTaken()) abort();
  }

  Listener listener_;
  UniqueFd peer_;
  Driver drivers_[3] = {Driver(kGatingHostGates), Driver(kGatingHostGates, kPreemptLevelDeactivate),
                        Driver(kGatingHostGates, kPreemptLevelInterrupt)};
  preempt::ProcessSlices slices_;
  NoThread thread_;
  preempt::ControlMemory memory_{table, state};
  preempt::MemoryLimit limit_{memory_};
  std::shared_ptr<server::TenantMemory> account_ = *server::TenantMemory::Create(1000);
  preempt::Agent agent_{
      memory_, limit_, table, urgencies, slices_, *this, state, thread_, &preempt::testing::FakeNow};
};

// Answers each tool that connects with the same packets, whatever it asks, and says no more.
class ClientScript::Answers {
 public:
  Answers() { listener_.Listen(); }
  ~Answers() {
    listener_.Stop();
    thread_.join();
  }
  void Set(std::vector<ipc::Packet> packets) {
    const std::lock_guard lock(mutex_);
    packets_ = std::move(packets);
  }
  const std::string& path() const { return listener_.path(); }

 private:
  void Serve() {
    // The last one stays open, so that the tool may still ask.
    for (UniqueFd tool, next; (next = listener_.Accept());) {
      tool = std::move(next);
      const std::lock_guard lock(mutex_);
      for (const ipc::Packet& packet : packets_) ipc::SendPacket(tool.get(), packet.bytes, packet.size);
      shutdown(tool.get(), SHUT_WR);
    }
  }

  Listener listener_;
  std::mutex mutex_;
  std::vector<ipc::Packet> packets_;
  std::thread thread_{[this] { Serve(); }};
};

namespace {

std::vector<ipc::Packet> AnyMessages(Bytes& bytes, size_t most) {
  std::vector<ipc::Packet> packets;
  while (!bytes.empty() && packets.size() < most) packets.push_back(AnyMessage(bytes));
  return packets;
}

// A message of a recording, mostly of small numbers: queues and processes that others name as well.
ipc::Packet AnyRecord(Bytes& bytes) {
  constexpr auto kFirst = static_cast<uint16_t>(ipc::MessageType::kRecordedQueue);
  const auto type = static_cast<ipc::MessageType>(kFirst + bytes.Below(6));
  const auto* const known = std::find_if(std::begin(ipc::kMessageSizes), std::end(ipc::kMessageSizes),
                                         [type](const ipc::MessageSize& size) { return size.type == type; });
  ipc::Packet packet{};
  packet.size = known->size;
  const ipc::Header header{type, 0, known->size};
  memcpy(packet.bytes, &header, sizeof header);
  for (size_t at = sizeof header; at + sizeof(uint64_t) <= packet.size && !bytes.empty();
       at += sizeof(uint64_t)) {
    const auto kind = bytes.Next<uint8_t>();
    const uint64_t value = kind < 192 ? kind % 8 : kind < 200 ? bytes.Next<uint64_t>() : 0;
    memcpy(packet.bytes + at, &value, sizeof value);
  }
  return packet;
}

// What is wrong with an answer is said.
template <typename Ask>
void Try(Ask&& ask) {
  try {
    ask();
  } catch (const std::runtime_error&) {
  }
}

}  // namespace

ClientScript::ClientScript() : process_(std::make_unique<Process>()), answers_(std::make_unique<Answers>()) {}
ClientScript::~ClientScript() = default;

void ClientScript::Run(std::span<const uint8_t> input) {
  Bytes bytes(input);
  switch (bytes.Below(4)) {
    case 0:
      return AskByTools(bytes);
    case 1:
      return Record(bytes);
    default:
      process_->Run(bytes);
  }
}

void ClientScript::AskByTools(Bytes& bytes) {
  const uint32_t what = bytes.Below(8);
  std::vector<ipc::Packet> packets;
  if (bytes.Below(8) != 0) {
    ipc::Welcome welcome{};
    welcome.major = ipc::kMajor;
    welcome.minor = AnyMinor(bytes);
    packets.push_back(ipc::PacketOf(welcome));
  }
  for (ipc::Packet& packet : AnyMessages(bytes, 8)) packets.push_back(std::move(packet));
  if (what % 2 == 0) packets.push_back(ipc::PacketOf(ipc::Reply{}));
  answers_->Set(std::move(packets));
  server::http::SocketClient http(answers_->path());
  const auto ask_session = [](auto&& ask) {
    cli::ServerSession session;
    ask(session);
  };
  switch (what / 2) {
    case 0:
      Try([&] { http.List(); });
      Try([&] { ask_session([](auto& session) { session.List(); }); });
      return Try([&] { ask_session([](auto& session) { session.Usage(); }); });
    case 1:
      Try([&] { http.Usage(true); });
      Try([&] { http.SetHints({}); });
      return Try([&] { ask_session([](auto& session) { session.SetHints({}); }); });
    case 2:
      Try([&] { http.Status(); });
      Try([&] { http.SetPolicy({}); });
      return Try([&] { ask_session([](auto& session) { session.Status(); }); });
    default:
      Try([&] { http.SetConfig({}); });
      Try([&] { ask_session([](auto& session) { session.SetPolicy({}); }); });
      return Try([&] {
        ask_session(
            [](auto& session) { session.GetLast(std::chrono::seconds(1), [](const ipc::Packet&) {}); });
      });
  }
}

// What was recorded is written as lines, which our own reader takes unless their numbers are out of range.
void ClientScript::Record(Bytes& bytes) {
  std::stringstream file;
  cli::RecordingWriter writer(file, bytes.Below(2) == 0);
  cli::ProcessWaits waits;
  writer.Begin({"2026-11-22T20:00:00Z", 0, "2.0", "HPF"});
  while (!bytes.empty()) {
    const ipc::Packet packet = AnyRecord(bytes);
    writer.Write(packet);
    waits.Take(packet);
  }
  writer.End(std::chrono::hours(1), "time");
  waits.Finish(std::chrono::hours(1));
  Try([&] { cli::ProcessWaits().Read(file, "FILE"); });
}

}  // namespace xsched::fuzz
