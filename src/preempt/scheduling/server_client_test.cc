// The connection to a server whose part the test plays, in virtual time.
#include "preempt/scheduling/server_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "base/pci_address.h"
#include "ipc/client.h"
#include "preempt/queue/testing/fake_process.h"
#include "preempt/scheduling/testing/device_file.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = ServerClient::State;
using News = SchedulerClient::News;

class ServerClientTest : public FakeProcess, ServerListener {
 protected:
  ServerClientTest() {
    char folder[] = "/tmp/xsched-client-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/s";
    setenv("XSCHED_SOCKET", path_.c_str(), 1);
  }
  ~ServerClientTest() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
    unsetenv("XSCHED_SOCKET");
  }

  void Start() { client_.Start(memfd_.get(), bell_.get(), fake_now); }
  void Listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener_.get(), 8), 0);
  }
  void Accept() {
    peer_.Reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    EXPECT_TRUE(Receive<ipc::Hello>());
  }
  void Connect(uint16_t minor = 0) {
    Listen();
    Start();
    Accept();
    ipc::Welcome welcome{};
    welcome.major = ipc::kMajor;
    welcome.minor = minor;
    EXPECT_TRUE(ipc::Send(peer_.get(), welcome));
    EXPECT_EQ(client_.Serve(fake_now), News::kWelcomed);
  }
  // The next message, which has arrived already; nullopt: there is none, or it has another type.
  template <typename T>
  std::optional<T> Receive() {
    ipc::Packet packet;
    if (ipc::ReceivePacket(peer_.get(), packet) != ipc::Received::kMessage) return std::nullopt;
    if (packet.header().type != T::kType) return std::nullopt;
    return packet.As<T>();
  }

  void OnSlice(XDevice device, uint64_t slice_us) override { slices_.push_back({device, slice_us}); }
  void OnHints(const ipc::QueueHints& message) override {
    hints_.push_back({message.handle, message.hints.priority});
  }
  void OnConfig(XQueueHandle queue, uint32_t level, const LaunchConfig& config) override {
    configs_.push_back({static_cast<int64_t>(queue), level, config.threshold, config.batch_size});
  }

  void OnTenantMemory(int memfd, uint32_t slot) override {
    accounts_.emplace_back(fcntl(memfd, F_GETFD) >= 0, slot);
  }

  std::string folder_;
  std::string path_;
  UniqueFd memfd_{eventfd(0, EFD_CLOEXEC)};  // any descriptor will do
  UniqueFd bell_{eventfd(0, EFD_CLOEXEC)};
  UniqueFd listener_;
  UniqueFd peer_;
  std::vector<std::pair<XDevice, uint64_t>> slices_;
  std::vector<std::array<int64_t, 4>> configs_;
  std::vector<std::pair<XQueueHandle, Priority>> hints_;
  std::vector<std::pair<bool, uint32_t>> accounts_;  // whether the descriptor is open
  FakeDriver driver_{kGatingHostGates};
  FakeDriver other_driver_{kGatingHostGates};
  ServerClient client_{*this};
};

TEST_F(ServerClientTest, without_a_server_it_tries_again_every_half_second) {
  Start();
  EXPECT_EQ(client_.state(), State::kApart);
  EXPECT_EQ(client_.wake_at(), fake_now + milliseconds(500));
  Listen();
  client_.ConnectIfDue(fake_now + milliseconds(499));
  EXPECT_EQ(client_.state(), State::kApart);
  client_.ConnectIfDue(fake_now + milliseconds(500));
  EXPECT_EQ(client_.state(), State::kGreeting);
  EXPECT_FALSE(client_.connected());
}

TEST_F(ServerClientTest, a_server_that_does_not_welcome_is_left_after_ten_seconds) {
  Listen();
  Start();
  EXPECT_EQ(client_.Serve(fake_now + seconds(9)), News::kNone);
  EXPECT_EQ(client_.state(), State::kGreeting);
  EXPECT_EQ(client_.Serve(fake_now + seconds(10)), News::kLost);
  EXPECT_EQ(client_.state(), State::kApart);
}

TEST_F(ServerClientTest, an_account_of_memory_is_passed_on_before_the_welcome_and_later) {
  Listen();
  Start();
  Accept();
  ipc::TenantMemory message{};
  message.slot = 3;
  const int memfd = memfd_.get();
  ASSERT_TRUE(ipc::Send(peer_.get(), message, &memfd, 1));
  EXPECT_EQ(client_.Serve(fake_now), News::kNone);
  EXPECT_THAT(accounts_, ::testing::ElementsAre(std::pair(true, 3u)));
  ipc::Welcome welcome{};
  welcome.major = ipc::kMajor;
  ASSERT_TRUE(ipc::Send(peer_.get(), welcome));
  message.slot = 4;
  ASSERT_TRUE(ipc::Send(peer_.get(), message, &memfd, 1));
  ASSERT_TRUE(ipc::Send(peer_.get(), message)) << "without a descriptor: ignored";
  EXPECT_EQ(client_.Serve(fake_now), News::kWelcomed);
  EXPECT_THAT(accounts_, ::testing::ElementsAre(std::pair(true, 3u), std::pair(true, 4u)));
}

TEST_F(ServerClientTest, a_server_that_goes_is_lost) {
  Connect();
  EXPECT_TRUE(client_.connected());
  peer_.Reset();
  EXPECT_EQ(client_.Serve(fake_now), News::kLost);
  EXPECT_FALSE(client_.connected());
}

TEST_F(ServerClientTest, a_server_that_hangs_while_something_is_taken_is_left_within_230_ms) {
  Connect();
  const TimePoint start = fake_now;
  TimePoint left = kNever;
  for (TimePoint now = start; now <= start + milliseconds(300) && left == kNever; now += milliseconds(1)) {
    EXPECT_EQ(client_.Serve(now), News::kNone);
    if (!client_.Beat(true, now)) left = now;
  }
  EXPECT_LE(left, start + milliseconds(230));
  EXPECT_EQ(client_.state(), State::kApart);
}

TEST_F(ServerClientTest, a_server_that_answers_is_kept_and_one_from_which_nothing_is_taken_is_not_asked) {
  Connect();
  for (TimePoint now = fake_now; now <= fake_now + seconds(1); now += milliseconds(1)) {
    client_.Serve(now);
    ASSERT_TRUE(client_.Beat(true, now));
    if (auto ping = Receive<ipc::Ping>()) {
      EXPECT_TRUE(ipc::Send(peer_.get(), *ping));
    }
  }
  fake_now += seconds(1);
  for (TimePoint now = fake_now; now <= fake_now + seconds(1); now += milliseconds(1))
    ASSERT_TRUE(client_.Beat(false, now));
  EXPECT_FALSE(Receive<ipc::Ping>());
  EXPECT_EQ(client_.wake_at(), kNever);
}

TEST_F(ServerClientTest, a_queue_is_introduced_once_and_one_that_the_server_does_not_know_is_not_spoken_of) {
  Connect();
  XQueue& queue = Make(driver_);
  EXPECT_TRUE(client_.Hints(queue));
  EXPECT_FALSE(Receive<ipc::QueueHints>());
  EXPECT_TRUE(client_.QueueCreated(queue));
  EXPECT_TRUE(client_.QueueCreated(queue));
  EXPECT_TRUE(client_.Hints(queue));
  const auto created_message = Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created_message);
  EXPECT_EQ(created_message->handle, queue.handle());
  EXPECT_TRUE(Receive<ipc::QueueHints>()) << "and not a second introduction";
  EXPECT_TRUE(client_.QueueDestroyed(queue));
  EXPECT_TRUE(client_.QueueDestroyed(queue));
  EXPECT_TRUE(Receive<ipc::QueueDestroyed>());
  EXPECT_FALSE(Receive<ipc::QueueDestroyed>());
}

TEST_F(ServerClientTest, before_a_queue_on_a_gpu_the_process_shows_its_device_files) {
  const UniqueFd file = OpenDeviceFile();
  if (!file) GTEST_SKIP() << "this machine has no device file that this user may open";
  Connect(ipc::kMinor);
  EXPECT_TRUE(client_.QueueCreated(Make(driver_, kPreemptLevelBlock, false, MakeDevice(kDeviceTypeGPU, 5))));
  ipc::Packet packet;
  ASSERT_EQ(ipc::ReceivePacket(peer_.get(), packet), ipc::Received::kMessage);
  EXPECT_EQ(packet.header().type, ipc::MessageType::kDeviceFiles);
  EXPECT_GE(packet.fd_count, 1);
  EXPECT_TRUE(Receive<ipc::QueueCreated>());
  EXPECT_TRUE(
      client_.QueueCreated(Make(other_driver_, kPreemptLevelBlock, false, MakeDevice(kDeviceTypeGPU, 5))));
  EXPECT_TRUE(Receive<ipc::QueueCreated>()) << "once for each device";
}

TEST_F(ServerClientTest, an_older_server_is_shown_no_device_files) {
  const UniqueFd file = OpenDeviceFile();
  Connect(6);
  EXPECT_TRUE(client_.QueueCreated(Make(driver_, kPreemptLevelBlock, false, MakeDevice(kDeviceTypeGPU, 5))));
  EXPECT_TRUE(Receive<ipc::QueueCreated>());
}

TEST_F(ServerClientTest, for_a_queue_on_the_cpu_no_device_files_are_shown) {
  const UniqueFd file = OpenDeviceFile();
  Connect(ipc::kMinor);
  EXPECT_TRUE(client_.QueueCreated(Make(driver_, kPreemptLevelBlock, false, MakeDevice(kDeviceTypeCPU, 5))));
  EXPECT_TRUE(Receive<ipc::QueueCreated>());
}

TEST_F(ServerClientTest, the_timeslice_and_k_are_passed_on) {
  Connect();
  EXPECT_TRUE(client_.Timeslice(700) && client_.AtATime(4));
  const auto timeslice = Receive<ipc::TimesliceHint>();
  const auto k = Receive<ipc::KDeadlineHint>();
  ASSERT_TRUE(timeslice && k);
  EXPECT_EQ(timeslice->timeslice_us, 700);
  EXPECT_EQ(k->at_a_time, 4u);
}

TEST_F(ServerClientTest, what_the_server_says_reaches_the_listener) {
  Connect();
  ipc::ProcessSlice slice{};
  slice.device = 7;
  slice.slice_us = 1000;
  ipc::QueueHints hints{};
  hints.handle = 42;
  hints.hints.priority = 3;
  ipc::QueueConfig config{};
  config.handle = 43;
  config.level = 2;
  config.threshold = 8;
  ASSERT_TRUE(ipc::Send(peer_.get(), slice) && ipc::Send(peer_.get(), hints) &&
              ipc::Send(peer_.get(), config));
  EXPECT_EQ(client_.Serve(fake_now), News::kNone);
  EXPECT_THAT(slices_, ::testing::ElementsAre(std::pair{XDevice{7}, uint64_t{1000}}));
  EXPECT_THAT(hints_, ::testing::ElementsAre(std::pair{XQueueHandle{42}, Priority{3}}));
  EXPECT_THAT(configs_, ::testing::ElementsAre(std::array<int64_t, 4>{43, 2, 8, 0}));
}

// The socket may hold only ten packets, so the server goes on sending meanwhile.
TEST_F(ServerClientTest, of_a_flood_of_messages_64_are_read_at_a_time) {
  constexpr size_t kFlood = 2000;
  Connect();
  std::atomic<bool> sent{false};
  std::thread server([&] {
    for (size_t i = 0; i < kFlood; ++i) {
      if (!ipc::SendWithin(peer_.get(), 10'000, ipc::ProcessSlice{})) break;
    }
    sent = true;
  });
  size_t most = 0;
  for (bool all_are_here = false; !all_are_here;) {
    all_are_here = sent;
    size_t before;
    do {
      before = slices_.size();
      EXPECT_EQ(client_.Serve(fake_now), News::kNone);
      most = std::max(most, slices_.size() - before);
    } while (slices_.size() != before);
  }
  server.join();
  EXPECT_EQ(slices_.size(), kFlood);
  EXPECT_LE(most, 64u);
}

TEST_F(ServerClientTest, what_cannot_be_said_ends_the_connection_and_begins_one_at_once) {
  Connect();
  peer_.Reset();
  EXPECT_FALSE(client_.Timeslice(100));
  EXPECT_EQ(client_.state(), State::kApart);
  client_.ConnectIfDue(fake_now);
  EXPECT_EQ(client_.state(), State::kGreeting);
}

}  // namespace
}  // namespace xsched::preempt::testing
