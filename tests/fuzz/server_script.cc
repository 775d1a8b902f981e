#include "fuzz/server_script.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "fuzz/any_message.h"
#include "ipc/testing/populated_segment.h"

namespace xsched::server::testing {

using fuzz::Bytes;

struct ServerScript::Client {
  std::unique_ptr<TestConnection> connection;
  ipc::OwnedSegment segment;  // of all its connections in a script
  UniqueFd bell;
  bool has_connected = false;  // so that the segment may have content
};

namespace {

constexpr uid_t kOtherUser = 54323;

// Of all users, with a file of tenants that changes.
Options ScriptOptions(const std::string& tenants) {
  spdlog::set_level(spdlog::level::off);
  Options options;
  options.system = true;
  options.tenants = tenants;
  options.idle_exit = std::chrono::hours(1);
  options.policy = *sched::FindPolicy(kPolicyHighestPriorityFirst);
  return options;
}

constexpr uint32_t kClients = 4;  // the last one is of another user, where this process may act as one

constexpr const char* kTenants[] = {
    "",
    "[default]\nmax_priority = 5\nqueues = 3\nweight = 50\nmemory = '1MiB'\n",
    "[[tenant]]\nname = 'a'\ncgroups = ['/']\nmax_priority = 9\nguarantee = 3\nlimit = 60\nmemory = '2G'\n",
    "[[tenant]]\nname = \"one\"\nusers = [0]\nqueues = 2\nlimit = 20\n",
    "[[tenant]]\nname = 1\n",  // a fault
    "[[tenant]]\nname = 'e'\ncgroups = ['/*']\neach = 'cgroup'\nmemory = '1G'\n",
    "[[tenant]]\nname = 'u'\neach = 'user'\nlimit = 30\nmax_priority = 7\n",
};

// Where the server says that it lives.
UniqueFd ServiceManagersSocket() {
  const std::string name = "@xsched-fuzz-" + std::to_string(getpid());
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  setenv("WATCHDOG_USEC", "1000", 1);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size() - 1, 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Where it is taken already, nobody hears what the server says.
  static_cast<void>(bind(fd.get(), reinterpret_cast<sockaddr*>(&address),
                         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())));
  return fd;
}

// Mostly in range.
ipc::WireHints AnyHints(Bytes& bytes) {
  ipc::WireHints hints{static_cast<int32_t>(bytes.Below(8)), 100, NO_DEADLINE, NO_LAXITY, 0, 0};
  switch (bytes.Below(8)) {
    case 0:
      hints.deadline_us = 100 * bytes.Below(100);
      break;
    case 1:
      hints.laxity_us = 100 * bytes.Below(100);
      hints.critical_priority = static_cast<int32_t>(bytes.Below(20));
      break;
    case 2:
      hints.utilization = static_cast<int32_t>(bytes.Below(101));
      break;
    case 3:
      bytes.Fill(&hints, sizeof hints);
      break;
    default:
      break;
  }
  return hints;
}

ipc::WireMoreHints AnyMoreHints(Bytes& bytes) {
  ipc::WireMoreHints hints{};
  hints.weight = WEIGHT_DEFAULT;
  hints.floor = FLOOR_DEFAULT;
  switch (bytes.Below(8)) {
    case 0:
      hints.weight = static_cast<int32_t>(1 + bytes.Below(200));
      break;
    case 1:
      hints.period_us = 10'000;
      hints.guarantee_us = 100 * bytes.Below(100);
      hints.limit_us = 100 * bytes.Below(100);
      hints.burst_us = 100 * bytes.Below(10);
      break;
    case 2:
      hints.latency_target_us = 100 * bytes.Below(100);
      hints.floor = static_cast<int32_t>(1 + bytes.Below(50));
      break;
    case 3:
      bytes.Fill(&hints, sizeof hints);
      break;
    default:
      break;
  }
  return hints;
}

}  // namespace

ServerScript::ServerScript()
    : listener_(folder_.path() + "/s", 0666, std::nullopt),
      tenants_(folder_.path() + "/tenants.toml"),
      service_manager_(ServiceManagersSocket()) {
  listener_.path().copy(socket_.text, sizeof socket_.text - 1);
  null_.Reset(open("/dev/null", O_RDWR | O_CLOEXEC));
  clients_.resize(kClients);
}

ServerScript::~ServerScript() = default;

void ServerScript::BeginServer() {
  now_ = TimePoint(std::chrono::hours(1));
  confined_ = stopped_ = false;
  const Surroundings surroundings{.clock = [] { return now_; },
                                  .is_confined = [](pid_t, uid_t) { return confined_; },
                                  .is_stopped = [](pid_t) { return stopped_; }};
  server_.emplace(ScriptOptions(tenants_), listener_, surroundings);
  for (Client& client : clients_) {
    if (client.segment.mapping.get() != nullptr && !std::exchange(client.has_connected, false)) continue;
    client.segment = ipc::PopulatedSegment();
    client.bell.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
  bystander_ = std::make_unique<TestConnection>(socket_);
  bystander_->Send(HelloOf(ipc::Role::kTool));
  Round();
}

void ServerScript::EndServer() {
  for (Client& client : clients_) client.connection.reset();
  unlink(tenants_.c_str());
  ExpectBystanderServed();
  // It ends when it is asked to.
  raise(SIGTERM);
  server_->Run();
  bystander_.reset();
  server_.reset();
}

void ServerScript::Round() {
  now_ += std::chrono::microseconds(50);
  server_->Round(0);
}

// From a millisecond to half a minute; meanwhile, the clients' processes may be stopped.
void ServerScript::PassTime(Bytes& bytes) {
  const auto amount = static_cast<int>(bytes.Next<uint8_t>());
  stopped_ = bytes.Below(8) == 0;
  now_ += amount < 128   ? std::chrono::milliseconds(amount)
          : amount < 224 ? std::chrono::milliseconds(20) * (amount - 127)
                         : std::chrono::seconds(amount - 223);
  Round();
}

void ServerScript::RunSession(std::span<const uint8_t> input) {
  Bytes bytes(input);
  BeginServer();
  SetAnyPolicy(bytes);
  if (const uint32_t begin = bytes.Below(32); begin % 8 != 0) {
    BeginAgent(clients_[0], bytes);
    BeginAgent(clients_[1], bytes);
    Connect(clients_[2], begin >= 24);
    clients_[2].connection->Send(HelloOf(ipc::Role::kTool));
    Round();
  }
  while (!bytes.empty()) {
    const uint32_t step = bytes.Below(18);
    const uint32_t who = bytes.Below(4 * kClients);
    Client& client = clients_[who % kClients];
    if (step == 0) {
      client.connection.reset();
    } else if (step == 1) {
      Round();
    } else if (!client.connection) {
      Connect(client, who >= 3 * kClients);
      SendHello(client, bytes);
      Round();  // only then is it known what the client may send
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
      Round();
    } else if (step == 11) {
      SetAnyPolicy(bytes);
    } else if (step == 12) {
      SendQueueMessage(client, bytes);
    } else if (step == 13) {
      ReadAll(client);
    } else if (step == 14) {
      SendToolRequest(clients_[2], bytes);
      Round();
    } else if (step == 15) {
      ChangeTenants(bytes);
    } else if (step == 17) {
      if (bytes.Below(4) != 0) {
        PassTime(bytes);
      } else {
        SendMany(client, bytes);
      }
    } else {
      WriteSegment(*client.segment.mapping.get(), bytes);
      ipc::RingScheduler(*client.segment.mapping.get(), bytes.Next<uint16_t>() % ipc::kMaxQueues,
                         client.bell.get());
    }
  }
  Round();
  EndServer();
}

void ServerScript::RunSegment(std::span<const uint8_t> input) {
  Bytes bytes(input);
  BeginServer();
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
      message.more_hints.floor = FLOOR_DEFAULT;
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
    const auto ring = bytes.Next<uint8_t>();
    ipc::RingScheduler(*client.segment.mapping.get(), ring % 5, client.bell.get());
    now_ += std::chrono::milliseconds(ring / 5);
    Round();
  }
  EndServer();
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
  Round();
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

// `confined`: it has not the rights of its user, as in a container.
void ServerScript::Connect(Client& client, bool confined) {
  client.has_connected = true;
  const bool as_other = &client == &clients_.back() && geteuid() == 0 && seteuid(kOtherUser) == 0;
  client.connection = std::make_unique<TestConnection>(socket_);
  if (as_other && seteuid(0) != 0) abort();
  confined_ = confined;
  Round();
  confined_ = false;
}

// With two queues on one device.
void ServerScript::BeginAgent(Client& client, Bytes& bytes) {
  const uint32_t begin = bytes.Below(8);
  Connect(client, begin >= 4);
  ipc::Hello hello = HelloOf(ipc::Role::kAgent);
  hello.job = begin % 2;
  client.connection->Send(hello, {client.segment.memfd.get(), client.bell.get()});
  for (uint32_t index = 0; index < 2; ++index) {
    ipc::QueueCreated message{};
    message.index = index;
    message.handle = index + 1;
    const bool time_slices = bytes.Below(2) == 1;
    message.level = time_slices ? kPreemptLevelInterrupt : kPreemptLevelBlock;
    message.traits = time_slices ? ipc::kTraitTimeSlices : ipc::kTraitReportsOverruns;
    message.device = bytes.Below(2);
    message.hints = AnyHints(bytes);
    message.more_hints = AnyMoreHints(bytes);
    client.connection->Send(message);
  }
  Round();
}

// What an agent says of its queues and its program.
void ServerScript::SendQueueMessage(Client& client, Bytes& bytes) {
  const uint32_t index = bytes.Below(3);
  switch (bytes.Below(6)) {
    case 0: {
      ipc::QueueHints message{};
      message.index = index;
      message.hints = AnyHints(bytes);
      message.more_hints = AnyMoreHints(bytes);
      client.connection->Send(message);
      break;
    }
    case 1: {
      ipc::QueueAbsent message{};
      message.index = index;
      message.absent = bytes.Below(2);
      client.connection->Send(message);
      break;
    }
    case 2: {
      ipc::QueueDestroyed message{};
      message.index = index;
      client.connection->Send(message);
      break;
    }
    case 3: {
      ipc::TimesliceHint message{};
      message.timeslice_us = 100 * bytes.Below(200);
      client.connection->Send(message);
      break;
    }
    case 4: {
      ipc::KDeadlineHint message{};
      message.at_a_time = bytes.Below(4);
      client.connection->Send(message);
      break;
    }
    default:
      client.connection->Send(ipc::DeviceFiles{}, AnyDescriptors(client, bytes));
  }
  Round();
}

// The file changes, and the server is told by the signal.
void ServerScript::ChangeTenants(Bytes& bytes) {
  std::ofstream(tenants_) << kTenants[bytes.Below(std::size(kTenants))];
  raise(SIGHUP);
  Round();
}

void ServerScript::ReadAll(Client& client) {
  ipc::Packet packet;
  while (ipc::ReceivePacket(client.connection->fd(), packet) == ipc::Received::kMessage) {
  }
}

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

// More than a client may leave unread, or than a user may have.
void ServerScript::SendMany(Client& client, Bytes& bytes) {
  const uint32_t what = bytes.Below(4);
  for (uint32_t i = 0; i < 128 && client.connection; ++i) {
    if (what == 0) {
      client.connection->Send(ipc::Ping{});
    } else if (what == 1) {
      client.connection->Send(ipc::GetUsage{});
    } else if (what == 2) {
      client.connection->Send(ipc::List{});
    } else {
      ipc::QueueCreated message{};
      message.index = 16 + i;
      message.device = i;
      message.level = kPreemptLevelInterrupt;
      message.traits = ipc::kTraitTimeSlices;
      message.hints = {1, 100, NO_DEADLINE, NO_LAXITY, 0, 0};
      message.more_hints.weight = WEIGHT_DEFAULT;
      message.more_hints.floor = FLOOR_DEFAULT;
      client.connection->Send(message);
    }
    if (i % 32 == 0) Round();
  }
  Round();
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

void ServerScript::SendAnyMessage(Client& client, Bytes& bytes) {
  const ipc::Packet packet = fuzz::AnyMessage(bytes);
  client.connection->SendBytes(packet.bytes, packet.size,
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
  if (!client.connection) return;
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
      request.timeslice_us = bytes.Below(2) == 0 ? 100 * bytes.Below(200) : bytes.Next<int32_t>();
      request.at_a_time = bytes.Below(2 * sched::kMostAtATime);
      if (bytes.Below(2) == 0) {
        for (char& c : request.setting) c = "HPFUPCS:/process"[bytes.Below(17)];
      }
      client.connection->Send(request);
      break;
    }
    case 3: {
      ipc::SetConfig request{};
      request.queue_id = bytes.Below(4) == 0 ? bytes.Next<uint16_t>() : 0;
      request.pid = getpid();
      request.level = bytes.Below(5);
      request.threshold = bytes.Below(2) == 0 ? bytes.Below(8) : bytes.Next<int32_t>();
      request.batch_size = bytes.Below(2) == 0 ? bytes.Below(8) : bytes.Next<int32_t>();
      client.connection->Send(request);
      break;
    }
    case 4: {
      ipc::Record request{};
      request.pid = bytes.Below(2) == 0 ? 0 : getpid();
      request.job = bytes.Below(3);
      client.connection->Send(request);
      break;
    }
    case 5:
      client.connection->Send(ipc::StopRecording{});
      break;
    default: {
      ipc::SetHints request{};
      request.queue_id = bytes.Below(4) == 0 ? bytes.Next<uint16_t>() : 0;
      request.pid = getpid();
      request.mask = bytes.Next<uint8_t>();
      request.hints = AnyHints(bytes);
      request.more_hints = AnyMoreHints(bytes);
      request.for_user = bytes.Below(4) == 0 ? kOtherUser + 1 : 0;
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
    Round();
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
