// What a client does with what a server says: a real agent, and a server that the test plays.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/client.h"
#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace xsched::preempt {
namespace {

// The server's end of one agent's connection.
class Peer {
 public:
  explicit Peer(UniqueFd socket) : socket_(std::move(socket)) {
    auto hello = Receive<ipc::Hello>();
    EXPECT_TRUE(hello && hello->major == ipc::kMajor && hello->role == ipc::Role::kAgent);
    ipc::Welcome welcome{};
    welcome.major = ipc::kMajor;
    EXPECT_TRUE(Send(welcome));
  }
  template <typename T>
  bool Send(const T& message) {
    return ipc::SendWithin(socket_.get(), 2000, message);
  }
  bool SendBytes(const void* data, size_t size) { return ipc::SendPacket(socket_.get(), data, size); }
  // The next message of that type; nullopt: none came.
  template <typename T>
  std::optional<T> Receive() {
    TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(5);
    while (MonotonicClock::now() < deadline) {
      ipc::Packet packet;
      ipc::Received received = ipc::ReceivePacket(socket_.get(), packet);
      if (received == ipc::Received::kClosed) return std::nullopt;
      if (received == ipc::Received::kMessage && packet.header().type == T::kType) return packet.As<T>();
      if (received == ipc::Received::kNothing) usleep(200);
    }
    return std::nullopt;
  }

 private:
  UniqueFd socket_;
};

class ServerLinkTest : public testing::Test {
 protected:
  ServerLinkTest() {
    char folder[] = "/tmp/xsched-link-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/s";
    setenv("XSCHED_SOCKET", path_.c_str(), 1);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(SoftQueueCreate(&hwq_, 5, kPreemptLevelBlock), kXSchedSuccess);
    EXPECT_EQ(XQueueCreate(&queue_, hwq_, kPreemptLevelBlock, 0), kXSchedSuccess);
  }
  ~ServerLinkTest() override {
    XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown);
    XQueueDestroy(queue_);
    HwQueueDestroy(hwq_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  Peer Accept() { return Peer(UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))); }
  // The program begins to use the server.
  Peer AcceptFirst() {
    auto connecting =
        std::async(std::launch::async, [] { return XHintSetScheduler(kSchedulerGlobal, kPolicyUnknown); });
    Peer peer = Accept();
    EXPECT_EQ(connecting.get(), kXSchedSuccess);
    return peer;
  }

  std::string folder_;
  std::string path_;
  UniqueFd listener_;
  HwQueueHandle hwq_ = 0;
  XQueueHandle queue_ = 0;
};

ipc::QueueHints HintsFor(const ipc::QueueCreated& queue, int32_t priority, int32_t utilization) {
  ipc::QueueHints message{};
  message.index = queue.index;
  message.handle = queue.handle;
  message.hints = queue.hints;
  message.hints.priority = priority;
  message.hints.utilization = utilization;
  return message;
}

TEST_F(ServerLinkTest, hints_that_others_have_given_outlive_the_server) {
  {
    Peer first = AcceptFirst();
    auto created = first.Receive<ipc::QueueCreated>();
    ASSERT_TRUE(created);
    EXPECT_EQ(created->hints.priority, PRIORITY_DEFAULT);
    EXPECT_EQ(created->handle, queue_);
    ASSERT_TRUE(first.Send(HintsFor(*created, 42, 30)));
    auto before = HintsFor(*created, 99, 99);  // of the queue that was in this place before
    before.handle -= uint64_t{1} << 24;
    ASSERT_TRUE(first.Send(before));
  }
  Peer second = Accept();
  auto created = second.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  EXPECT_EQ(created->hints.priority, 42);
  EXPECT_EQ(created->hints.utilization, 30);

  // What the program hints itself leaves the rest as others have set it.
  ASSERT_EQ(XHintPriority(queue_, 7), kXSchedSuccess);
  auto hints = second.Receive<ipc::QueueHints>();
  ASSERT_TRUE(hints);
  EXPECT_EQ(hints->hints.priority, 7);
  EXPECT_EQ(hints->hints.utilization, 30);
}

TEST_F(ServerLinkTest, what_a_newer_server_says_is_ignored) {
  Peer server = AcceptFirst();
  ASSERT_TRUE(server.Receive<ipc::QueueCreated>());
  struct {
    ipc::Header header{static_cast<ipc::MessageType>(999), 0, 24};
    char news[16] = {};
  } unknown;
  ASSERT_TRUE(server.SendBytes(&unknown, sizeof unknown));
  ASSERT_EQ(XHintPriority(queue_, 3), kXSchedSuccess);
  EXPECT_TRUE(server.Receive<ipc::QueueHints>()) << "the connection stays";
}

TEST_F(ServerLinkTest, a_refused_queue_is_one_warning) {
  testing::internal::CaptureStderr();
  {
    Peer first = AcceptFirst();
    ASSERT_TRUE(first.Receive<ipc::QueueCreated>());
    ipc::Reply reply{};
    reply.result = kXSchedErrorNotAllowed;
    strcpy(reply.text, "too many queues");
    ASSERT_TRUE(first.Send(reply) && first.Send(reply));
  }
  Peer second = Accept();
  ASSERT_TRUE(second.Receive<ipc::QueueCreated>());
  std::string said = testing::internal::GetCapturedStderr();
  size_t at = said.find("too many queues");
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("too many queues", at + 1), std::string::npos) << said;
}

}  // namespace
}  // namespace xsched::preempt
