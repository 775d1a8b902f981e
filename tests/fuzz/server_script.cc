#include "fuzz/server_script.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

namespace xsched::server::testing {

// The rest of the input. After its end it yields zeroes.
class ServerScript::Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  template <typename T>
  T Next() {
    T value{};
    Fill(&value, sizeof value);
    return value;
  }
  // A number below `limit`, from one byte.
  uint32_t Below(uint32_t limit) { return Next<uint8_t>() % limit; }
  void Fill(void* target, size_t size) {
    size_t given = std::min(size, bytes_.size());
    memcpy(target, bytes_.data(), given);
    bytes_ = bytes_.subspan(given);
  }

 private:
  std::span<const uint8_t> bytes_;
};

struct ServerScript::Client {
  std::unique_ptr<TestConnection> connection;
  ipc::OwnedSegment segment;  // made once: the same memory serves many connections
  UniqueFd bell;
};

namespace {

Options ScriptOptions() {
  spdlog::set_level(spdlog::level::off);
  Options options;
  options.policy = *sched::FindPolicy(kPolicyHighestPriorityFirst);
  return options;
}

constexpr uint32_t kClients = 4;

}  // namespace

ServerScript::ServerScript()
    : listener_(folder_.path() + "/s", 0600, std::nullopt), server_(ScriptOptions(), listener_) {
  listener_.path().copy(socket_.text, sizeof socket_.text - 1);
  null_.Reset(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (uint32_t i = 0; i < kClients; ++i) {
    Client& client = clients_.emplace_back();
    auto segment = ipc::CreateSegment();
    if (!segment) abort();
    client.segment = std::move(*segment);
    client.bell.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
  bystander_ = std::make_unique<TestConnection>(socket_);
  bystander_->Send(HelloOf(ipc::Role::kTool));
}

ServerScript::~ServerScript() = default;

void ServerScript::RunSession(std::span<const uint8_t> input) {
  Bytes bytes(input);
  SetAnyPolicy(bytes);
  while (!bytes.empty()) {
    uint32_t step = bytes.Below(14);
    Client& client = clients_[bytes.Below(kClients)];
    if (step == 0) {
      client.connection.reset();
    } else if (step == 1) {
      server_.Round(0);
    } else if (!client.connection) {
      Connect(client);
      SendHello(client, bytes);
      server_.Round(0);  // only then is it known what the client may send
    } else if (step == 2) {
      SendHello(client, bytes);
    } else if (step <= 5) {
      SendQueueCreated(client, bytes);
    } else if (step <= 7) {
      SendAnyMessage(client, bytes);
    } else if (step == 8) {
      SendGarbage(client, bytes);
    } else if (step == 9) {
      SendToolRequest(client, bytes);
    } else if (step == 10) {
      Work(client, bytes);
      server_.Round(0);
    } else if (step == 11) {
      SetAnyPolicy(bytes);
    } else {
      WriteSegment(*client.segment.mapping.get(), bytes);
      ipc::RingScheduler(*client.segment.mapping.get(), bytes.Next<uint16_t>() % ipc::kMaxQueues,
                         client.bell.get());
    }
  }
  server_.Round(0);
  for (Client& client : clients_) client.connection.reset();
  ExpectBystanderServed();
}

void ServerScript::RunSegment(std::span<const uint8_t> input) {
  Bytes bytes(input);
  SetAnyPolicy(bytes);
  for (uint32_t i = 0; i < 2; ++i) {
    Client& client = clients_[i];
    Connect(client);
    client.connection->Send(HelloOf(ipc::Role::kAgent), {client.segment.memfd.get(), client.bell.get()});
    for (uint32_t index = 0; index < 4; ++index) {
      ipc::QueueCreated message{};
      message.index = index;
      message.level = kPreemptLevelBlock;
      message.hints = {static_cast<int32_t>(bytes.Below(4)), 100, NO_DEADLINE, NO_LAXITY, 0, 0};
      message.device = bytes.Below(2);
      message.more_hints.weight = static_cast<int32_t>(1 + bytes.Below(8));
      client.connection->Send(message);
    }
  }
  // What they do is recorded by a tool that reads nothing.
  Connect(clients_[2]);
  clients_[2].connection->Send(HelloOf(ipc::Role::kTool));
  clients_[2].connection->Send(ipc::Record{});
  while (!bytes.empty()) {
    Client& client = clients_[bytes.Below(2)];
    for (uint32_t words = bytes.Below(8); words > 0; --words) {
      WriteSegment(*client.segment.mapping.get(), bytes);
    }
    ipc::RingScheduler(*client.segment.mapping.get(), bytes.Below(5), client.bell.get());
    server_.Round(0);
  }
  for (Client& client : clients_) client.connection.reset();
  ExpectBystanderServed();
}

// One policy, or a chain of two, of all that there are.
void ServerScript::SetAnyPolicy(Bytes& bytes) {
  const auto any = [&bytes] {
    const auto policies = sched::Policies();
    return policies[bytes.Below(static_cast<uint32_t>(policies.size()))]().info().name;
  };
  std::string setting = any();
  if (bytes.Below(2) == 0) setting += ":process";
  if (bytes.Below(4) == 0) setting += std::string("/") + any();
  ipc::SetPolicy request{};
  ipc::SetText(request.setting, setting);
  request.at_a_time = 1 + bytes.Below(3);
  if (!bystander_->Send(request)) abort();
  server_.Round(0);
  bystander_->Receive(0);
}

// As a program does: commands are launched and retire, of one of the first queues, and the scheduler is told.
void ServerScript::Work(Client& client, Bytes& bytes) {
  ipc::Segment& segment = *client.segment.mapping.get();
  const uint32_t index = bytes.Below(16);
  ipc::ControlBlock& block = segment.blocks[index];
  block.submitted.fetch_add(bytes.Below(4));
  if (bytes.Below(2) == 0) block.retired.store(block.submitted.load());
  if (bytes.Below(4) == 0) ipc::WriteWait(segment.depends[index][0], {bytes.Below(16), 0, bytes.Below(8)});
  ipc::RingScheduler(segment, index, client.bell.get());
}

void ServerScript::Connect(Client& client) { client.connection = std::make_unique<TestConnection>(socket_); }

void ServerScript::SendHello(Client& client, Bytes& bytes) {
  uint32_t kind = bytes.Below(8);
  ipc::Hello hello = HelloOf(kind < 2 ? ipc::Role::kTool : ipc::Role::kAgent);
  if (kind == 7) bytes.Fill(&hello.major, 8);
  std::vector<int> fds;
  if (kind >= 6) {
    fds = AnyDescriptors(client, bytes);
  } else if (kind >= 2) {
    fds = {client.segment.memfd.get(), client.bell.get()};
  }
  client.connection->Send(hello, fds);
}

std::vector<int> ServerScript::AnyDescriptors(Client& client, Bytes& bytes) const {
  const int choice[] = {client.segment.memfd.get(), client.bell.get(), null_.get()};
  std::vector<int> fds;
  for (uint32_t count = bytes.Below(5); count > 0; --count) fds.push_back(choice[bytes.Below(3)]);
  return fds;
}

// A valid message with a few changed bytes.
void ServerScript::SendQueueCreated(Client& client, Bytes& bytes) {
  ipc::QueueCreated message{};
  message.index = bytes.Below(16);
  message.level = kPreemptLevelBlock;
  message.device = bytes.Below(3);
  message.hints = {static_cast<int32_t>(bytes.Below(8)), 100, NO_DEADLINE, NO_LAXITY, 0, 0};
  if (bytes.Below(8) == 0) {
    size_t at = sizeof(ipc::Header) + bytes.Below(64);
    bytes.Fill(reinterpret_cast<unsigned char*>(&message) + at, 4);
  }
  client.connection->Send(message);
}

// A valid header with any type, mostly with that type's length, and any content.
void ServerScript::SendAnyMessage(Client& client, Bytes& bytes) {
  alignas(8) unsigned char packet[ipc::kMaxMessage] = {};
  const auto& [type, size] = ipc::kMessageSizes[bytes.Below(std::size(ipc::kMessageSizes))];
  ipc::Header header{type, 0, size};
  const uint32_t oddity = bytes.Below(8);
  if (oddity == 0) header.type = static_cast<ipc::MessageType>(bytes.Next<uint16_t>());
  if (oddity == 1) header.size = static_cast<uint32_t>(sizeof header) + bytes.Below(256);
  memcpy(packet, &header, sizeof header);
  // Prefer small numbers, because they are more often the index of a queue.
  packet[sizeof header] = static_cast<unsigned char>(bytes.Below(16));
  if (bytes.Below(2) == 0) bytes.Fill(packet + sizeof header + 1, header.size - sizeof header);
  client.connection->SendBytes(packet, header.size,
                               bytes.Below(16) == 0 ? AnyDescriptors(client, bytes) : std::vector<int>{});
}

void ServerScript::SendGarbage(Client& client, Bytes& bytes) {
  unsigned char packet[ipc::kMaxMessage + 64];
  size_t size = bytes.Next<uint16_t>() % (sizeof packet + 1);
  memset(packet, 0, sizeof packet);
  bytes.Fill(packet, std::min<size_t>(size, 256));
  client.connection->SendBytes(packet, size);
}

void ServerScript::SendToolRequest(Client& client, Bytes& bytes) {
  switch (bytes.Below(10)) {
    case 6:
      client.connection->Send(ipc::GetUsage{});
      break;
    case 7: {
      ipc::RecordLast request{};
      request.span_ns = bytes.Next<uint32_t>();
      client.connection->Send(request);
      break;
    }
    case 8: {
      ipc::SetActiveWindow request{};
      request.user = getuid();
      request.display = bytes.Below(100);
      request.pid = bytes.Below(2) == 0 ? 0 : getpid();
      client.connection->Send(request);
      break;
    }
    case 0:
      client.connection->Send(ipc::List{});
      break;
    case 1:
      client.connection->Send(ipc::GetStatus{});
      break;
    case 2: {
      ipc::SetPolicy request{};
      request.policy = bytes.Below(kPolicyMax + 1);
      request.timeslice_us = bytes.Next<int32_t>();
      request.at_a_time = bytes.Below(2 * sched::kMostAtATime);
      if (bytes.Below(2) == 0) {
        for (char& c : request.setting) c = "HPFUPCS:/process"[bytes.Below(17)];
      }
      client.connection->Send(request);
      break;
    }
    case 3: {
      ipc::SetConfig request{};
      request.queue_id = bytes.Next<uint16_t>();
      request.pid = getpid();
      request.level = bytes.Below(5);
      request.threshold = bytes.Next<int32_t>();
      request.batch_size = bytes.Next<int32_t>();
      client.connection->Send(request);
      break;
    }
    case 4: {
      ipc::Record request{};
      request.pid = bytes.Below(2) == 0 ? 0 : getpid();
      client.connection->Send(request);
      break;
    }
    case 5:
      client.connection->Send(ipc::StopRecording{});
      break;
    default: {
      ipc::SetHints request{};
      request.queue_id = bytes.Next<uint16_t>();
      request.pid = getpid();
      request.mask = bytes.Next<uint8_t>();
      bytes.Fill(&request.hints, sizeof request.hints);
      bytes.Fill(&request.more_hints, sizeof request.more_hints);
      client.connection->Send(request);
    }
  }
}

void ServerScript::WriteSegment(ipc::Segment& segment, Bytes& bytes) {
  auto* start = reinterpret_cast<unsigned char*>(&segment);
  size_t at;
  switch (bytes.Below(4)) {
    case 0:  // anywhere
      at = bytes.Next<uint32_t>() % (ipc::kSegmentSize - 8);
      break;
    case 1:  // a dependency of one of the first queues
      at = offsetof(ipc::Segment, depends) + bytes.Below(16 * 16) * 4;
      break;
    default:  // a block of one of them
      at = offsetof(ipc::Segment, blocks) + bytes.Below(16 * 16) * 8;
  }
  // The header stays as MapSegment requires it. Other values would only end the connection.
  if (at < offsetof(ipc::SegmentHeader, dirty)) return;
  uint64_t value = bytes.Below(2) == 0 ? bytes.Below(8) : bytes.Next<uint64_t>();
  memcpy(start + at, &value, sizeof value);
}

void ServerScript::ExpectBystanderServed() {
  // It sends a request after all the others' messages, and must get the answer in a bounded number of rounds.
  if (!bystander_->Send(ipc::GetStatus{})) abort();
  for (int round = 0; round < 100; ++round) {
    server_.Round(0);
    ipc::Packet packet;
    while (ipc::ReceivePacket(bystander_->fd(), packet) == ipc::Received::kMessage) {
      if (packet.header().type != ipc::MessageType::kStatus) continue;
      // Clients that have left hold nothing.
      if (packet.As<ipc::Status>().queues == 0) return;
      if (!bystander_->Send(ipc::GetStatus{})) abort();
    }
  }
  abort();
}

}  // namespace xsched::server::testing
