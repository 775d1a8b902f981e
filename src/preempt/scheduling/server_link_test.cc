// How a client reacts to a server: a real agent, and a server whose part the test plays.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "hal/contract.h"
#include "ipc/client.h"
#include "ipc/control_access.h"
#include "ipc/segment.h"
#include "preempt/api/launch.h"
#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace xsched::preempt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The server's end of one agent's connection.
class Peer {
 public:
  explicit Peer(UniqueFd socket) : socket_(std::move(socket)) {
    ipc::Packet packet;
    EXPECT_TRUE(WaitFor(ipc::MessageType::kHello, packet));
    hello_ = packet.As<ipc::Hello>();
    EXPECT_TRUE(hello_.major == ipc::kMajor && hello_.role == ipc::Role::kAgent);
    if (packet.fd_count == 2) {
      Result<ipc::MappedSegment> mapped = ipc::MapSegment(packet.fds[0].get());
      EXPECT_TRUE(mapped);
      if (mapped) segment_ = std::move(*mapped);
    }
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
    ipc::Packet packet;
    if (!WaitFor(T::kType, packet)) return std::nullopt;
    return packet.As<T>();
  }
  // Writes into the control block of queue `index`, as a scheduler does.
  void SetGate(uint32_t index, uint16_t gate, uint32_t flags) {
    ipc::WriteWords(segment_->blocks[index], {gate, flags});
  }
  void Hold(uint32_t index) { SetGate(index, ipc::kGateHold, ipc::kFlagTracked | ipc::kFlagGated); }
  void Query(uint32_t index) {
    segment_->blocks[index].query.fetch_add(1, std::memory_order_release);
    Send(ipc::Wake{});
  }
  void QueryAndAwaitAnswer(uint32_t index) {
    const auto forget = [](uint32_t) {};
    ipc::ForEachDirty(*segment_.get(), forget);
    Query(index);
    const TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(5);
    const std::atomic<uint64_t>& dirty = segment_->header.dirty[index / 64];
    while ((dirty.load(std::memory_order_acquire) >> index % 64 & 1) == 0 && MonotonicClock::now() < deadline)
      usleep(200);
  }
  const ipc::ControlBlock& block(uint32_t index) const { return segment_->blocks[index]; }
  const ipc::Hello& hello() const { return hello_; }

 private:
  bool WaitFor(ipc::MessageType type, ipc::Packet& packet) {
    TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(5);
    while (MonotonicClock::now() < deadline) {
      ipc::Received received = ipc::ReceivePacket(socket_.get(), packet);
      if (received == ipc::Received::kClosed) return false;
      if (received == ipc::Received::kMessage && packet.header().type == type) return true;
      if (received == ipc::Received::kNothing) usleep(200);
    }
    return false;
  }

  UniqueFd socket_;
  ipc::Hello hello_{};
  ipc::MappedSegment segment_;
};

// Polls until `done`, at most for 5 s. Returns how long it took.
template <typename Done>
Duration Until(Done&& done) {
  const TimePoint start = MonotonicClock::now();
  while (!done() && MonotonicClock::now() < start + seconds(5)) usleep(500);
  return MonotonicClock::now() - start;
}

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

  uint64_t Finished() const {
    uint64_t finished = 0;
    SoftQueueReport(hwq_, &finished, nullptr);
    return finished;
  }
  void Launch() const { EXPECT_EQ(SoftLaunch(hwq_, 100, nullptr, nullptr), kXSchedSuccess); }

  Peer Accept() { return Peer(UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))); }
  // The program begins to use the server. Returns its connection.
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
  message.more_hints = queue.more_hints;
  return message;
}

TEST_F(ServerLinkTest, hints_that_others_have_given_outlive_the_server) {
  {
    Peer first = AcceptFirst();
    auto created = first.Receive<ipc::QueueCreated>();
    ASSERT_TRUE(created);
    EXPECT_EQ(created->hints.priority, PRIORITY_DEFAULT);
    EXPECT_EQ(created->handle, queue_);
    ipc::QueueHints given = HintsFor(*created, 42, 30);
    given.more_hints.weight = 250;
    ASSERT_TRUE(first.Send(given));
    auto before = HintsFor(*created, 99, 99);  // of the queue that was in this place before
    before.handle -= uint64_t{1} << 24;
    ASSERT_TRUE(first.Send(before));
  }
  Peer second = Accept();
  auto created = second.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  EXPECT_EQ(created->hints.priority, 42);
  EXPECT_EQ(created->hints.utilization, 30);
  EXPECT_EQ(created->more_hints.weight, 250);

  // A server that does not know weights leaves them as they are.
  ipc::QueueHints of_old_server = HintsFor(*created, 42, 30);
  of_old_server.more_hints = {};
  ASSERT_TRUE(second.Send(of_old_server));
  // The agent answers this one. Then it has taken what was sent before.
  ipc::QueueConfig nothing{};
  nothing.handle = created->handle;
  ASSERT_TRUE(second.Send(nothing));
  ASSERT_TRUE(second.Receive<ipc::QueueConfig>());

  // A hint of the program leaves the other hints as others have set them.
  ASSERT_EQ(XHintPriority(queue_, 7), kXSchedSuccess);
  auto hints = second.Receive<ipc::QueueHints>();
  ASSERT_TRUE(hints);
  EXPECT_EQ(hints->hints.priority, 7);
  EXPECT_EQ(hints->hints.utilization, 30);
  EXPECT_EQ(hints->more_hints.weight, 250);
}

TEST_F(ServerLinkTest,
       a_level_and_a_launch_config_that_others_ask_for_are_set_as_far_as_possible_and_reported) {
  Peer server = AcceptFirst();
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  ipc::QueueConfig wanted{};
  wanted.handle = created->handle;
  wanted.level = kPreemptLevelInterrupt;
  wanted.threshold = 4;
  wanted.batch_size = 2;
  ASSERT_TRUE(server.Send(wanted));
  auto reported = server.Receive<ipc::QueueConfig>();
  ASSERT_TRUE(reported);
  EXPECT_EQ(reported->level, static_cast<uint32_t>(kPreemptLevelBlock)) << "the best that it has";
  EXPECT_EQ(reported->threshold, 4);
  EXPECT_EQ(reported->batch_size, 2);

  // What is not valid together stays as it is.
  wanted.level = kPreemptLevelUnknown;
  wanted.threshold = 1;
  wanted.batch_size = 0;
  ASSERT_TRUE(server.Send(wanted));
  reported = server.Receive<ipc::QueueConfig>();
  ASSERT_TRUE(reported);
  EXPECT_EQ(reported->threshold, 4);

  wanted.handle -= uint64_t{1} << 24;  // the queue that was in this place before
  wanted.threshold = 8;
  ASSERT_TRUE(server.Send(wanted));
  ASSERT_EQ(XHintPriority(queue_, 3), kXSchedSuccess);
  EXPECT_TRUE(server.Receive<ipc::QueueHints>());
}

// Its stack unwinds without our destructors.
TEST_F(ServerLinkTest, a_thread_that_is_canceled_while_it_destroys_a_queue_leaves_nothing_locked) {
  Peer server = AcceptFirst();
  HwQueueHandle other_hwq = 0;
  XQueueHandle other = 0;
  ASSERT_EQ(SoftQueueCreate(&other_hwq, 5, kPreemptLevelBlock), kXSchedSuccess);
  ASSERT_EQ(XQueueCreate(&other, other_hwq, kPreemptLevelBlock, 0), kXSchedSuccess);
  pthread_t thread;
  const auto destroy = [](void* queue) -> void* {
    pthread_cancel(pthread_self());
    XQueueDestroy(*static_cast<XQueueHandle*>(queue));
    pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, destroy, &other), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(server.Receive<ipc::QueueDestroyed>());
  auto hint = std::async(std::launch::async, [&] { return XHintPriority(queue_, 7); });
  ASSERT_EQ(hint.wait_for(seconds(5)), std::future_status::ready);
  EXPECT_EQ(hint.get(), kXSchedSuccess);
  EXPECT_EQ(HwQueueDestroy(other_hwq), kXSchedSuccess) << "no pin is left";
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

// ---- giving back what was taken by a scheduler that has gone or hangs ----

TEST_F(ServerLinkTest, a_server_that_hangs_holds_nobody_for_more_than_a_moment) {
  Peer server = AcceptFirst();
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  server.Hold(created->index);
  Launch();
  EXPECT_LT(Until([&] { return Finished() == 1; }), milliseconds(450));
  EXPECT_EQ(Finished(), 1u);
  // Its new connection is already pending, in case the server continues.
  Peer again = Accept();
  EXPECT_TRUE(again.Receive<ipc::QueueCreated>());
}

TEST_F(ServerLinkTest, a_server_that_answers_may_hold_for_long) {
  Peer server = AcceptFirst();
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  server.Hold(created->index);
  Launch();
  int pings = 0;
  for (const TimePoint end = MonotonicClock::now() + milliseconds(700); MonotonicClock::now() < end;
       ++pings) {
    auto ping = server.Receive<ipc::Ping>();
    ASSERT_TRUE(ping);
    ipc::Pong pong{};
    pong.cookie = ping->cookie;
    ASSERT_TRUE(server.Send(pong));
  }
  EXPECT_GE(pings, 5);
  EXPECT_EQ(Finished(), 0u);
  server.SetGate(created->index, ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagGated);
  server.Send(ipc::Wake{});
  Until([&] { return Finished() == 1; });
  EXPECT_EQ(Finished(), 1u);
}

TEST_F(ServerLinkTest, a_server_that_goes_lets_what_it_held_run_at_once) {
  auto server = std::make_unique<Peer>(AcceptFirst());
  auto created = server->Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  server->Hold(created->index);
  Launch();
  usleep(20'000);
  EXPECT_EQ(Finished(), 0u);
  server.reset();
  EXPECT_LT(Until([&] { return Finished() == 1; }), milliseconds(100));
}

TEST_F(ServerLinkTest, what_a_server_writes_that_has_been_left_holds_nobody) {
  Peer server = AcceptFirst();
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  ASSERT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
  server.Hold(created->index);  // it finishes its round
  Launch();
  EXPECT_LT(Until([&] { return Finished() == 1; }), milliseconds(100));
  EXPECT_EQ(Finished(), 1u);
}

TEST_F(ServerLinkTest, what_a_lost_server_still_writes_is_taken_back) {
  Peer server = AcceptFirst();
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  ASSERT_TRUE(server.SendBytes("nonsense", 8));  // the client leaves
  Peer second = Accept();                        // now another server has accepted it
  ASSERT_TRUE(second.Receive<ipc::QueueCreated>());
  ASSERT_TRUE(second.SendBytes("nonsense", 8));
  usleep(20'000);
  server.Hold(created->index);
  Launch();
  EXPECT_LT(Until([&] { return Finished() == 1; }), milliseconds(100));
  EXPECT_EQ(Finished(), 1u);
  Until([&] { return server.block(created->index).gate == ipc::kGateRun; });
  EXPECT_EQ(server.block(created->index).gate, ipc::kGateRun);
  EXPECT_EQ(server.block(created->index).flags, 0u);
}

// ---- nothing waits for a server ----

TEST_F(ServerLinkTest, a_client_with_many_messages_never_waits_for_a_server_that_does_not_read) {
  Peer server = AcceptFirst();
  ASSERT_TRUE(server.Receive<ipc::QueueCreated>());
  Duration longest{};
  constexpr int kHints = 2000;
  for (int i = 1; i <= kHints; ++i) {
    const TimePoint before = MonotonicClock::now();
    ASSERT_EQ(XHintPriority(queue_, i % 100), kXSchedSuccess);
    longest = std::max(longest, MonotonicClock::now() - before);
  }
  EXPECT_LT(longest, milliseconds(50));
  for (int i = 1; i <= kHints; ++i) {
    auto hints = server.Receive<ipc::QueueHints>();
    ASSERT_TRUE(hints) << "after " << i;
    ASSERT_EQ(hints->hints.priority, i % 100);
  }
}

TEST_F(ServerLinkTest, a_client_with_too_many_messages_connects_anew_with_its_present_state) {
  Peer server = AcceptFirst();
  ASSERT_TRUE(server.Receive<ipc::QueueCreated>());
  for (int i = 0; i < 40'000; ++i) ASSERT_EQ(XHintPriority(queue_, i % 2 == 0 ? 3 : 5), kXSchedSuccess);
  ASSERT_EQ(XHintPriority(queue_, 9), kXSchedSuccess);
  Peer again = Accept();
  auto created = again.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  EXPECT_EQ(created->hints.priority, 9);
}

TEST_F(ServerLinkTest, a_queue_that_the_program_has_suspended_is_so_for_the_next_server_too) {
  { Peer first = AcceptFirst(); }
  ASSERT_EQ(XQueueSuspend(queue_, kQueueSuspendFlagNone), kXSchedSuccess);
  Peer second = Accept();
  auto absent = second.Receive<ipc::QueueAbsent>();
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->absent, 1u);
  ASSERT_EQ(XQueueResume(queue_, kQueueResumeFlagNone), kXSchedSuccess);
}

// If a thread of ours read the environment while the program changes it, the program could crash.
TEST_F(ServerLinkTest, a_server_is_found_again_where_the_environment_said_it_is_when_scheduling_began) {
  setenv("XSCHED_JOB", "training-1", 1);
  uint64_t job = 0;
  {
    Peer first = AcceptFirst();
    job = first.hello().job;
  }
  setenv("XSCHED_SOCKET", "/nowhere", 1);
  setenv("XSCHED_JOB", "training-2", 1);
  EXPECT_EQ(Accept().hello().job, job);
  unsetenv("XSCHED_JOB");
}

TEST_F(ServerLinkTest, agents_of_one_job_say_the_same_number) {
  EXPECT_EQ(AcceptFirst().hello().job, 0u);
  auto job_of = [this](const char* name) {
    setenv("XSCHED_JOB", name, 1);
    const uint64_t job = AcceptFirst().hello().job;
    unsetenv("XSCHED_JOB");
    return job;
  };
  const uint64_t first = job_of("training-1");
  EXPECT_NE(first, 0u);
  EXPECT_EQ(job_of("training-1"), first);
  EXPECT_NE(job_of("training-2"), first);
}

// ---- the local scheduler, after a server that still writes ----

TEST_F(ServerLinkTest, what_a_left_server_writes_late_holds_nobody_under_the_local_scheduler) {
  Peer server = AcceptFirst();
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  Launch();
  Until([&] { return Finished() == 1; });
  // Longer than the agent goes on checking after something was taken.
  usleep(1'300'000);
  uint64_t launched = 1;
  for (const uint32_t flags : {ipc::kFlagTracked | ipc::kFlagGated, 0u}) {
    server.SetGate(created->index, ipc::kGateHold, flags);
    Launch();
    ++launched;
    const Duration took =
        Until([&] { return Finished() == launched && server.block(created->index).gate == ipc::kGateRun; });
    EXPECT_LT(took, milliseconds(250)) << "flags " << flags;
    EXPECT_EQ(server.block(created->index).flags, 0u);
  }
}

TEST_F(ServerLinkTest, what_a_left_server_writes_late_opens_nothing_that_the_local_scheduler_holds) {
  HwQueueHandle urgent_hwq = 0;
  XQueueHandle urgent = 0;
  ASSERT_EQ(SoftQueueCreate(&urgent_hwq, 5, kPreemptLevelBlock), kXSchedSuccess);
  ASSERT_EQ(XQueueCreate(&urgent, urgent_hwq, kPreemptLevelBlock, 0), kXSchedSuccess);
  ASSERT_EQ(XHintPriority(urgent, 5), kXSchedSuccess);
  Peer server = AcceptFirst();
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  ASSERT_EQ(created->handle, queue_);
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(SoftLaunch(urgent_hwq, 1000, nullptr, nullptr), kXSchedSuccess);
  Launch();
  const auto held = [&] { return server.block(created->index).gate == ipc::kGateHold; };
  Until(held);
  ASSERT_TRUE(held());
  server.SetGate(created->index, ipc::kGateRun, 0);
  EXPECT_LT(Until(held), milliseconds(250));
  ASSERT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
  XQueueDestroy(urgent);
  HwQueueDestroy(urgent_hwq);
}

// ---- nothing waits for a driver ----

// A hardware queue whose driver answers queries only after the test releases it.
class SilentDriver {
 public:
  explicit SilentDriver(uint64_t key = kKey) {
    XHwQueueOps ops{};
    ops.size = sizeof ops;
    ops.platform = kPlatformCUDA;
    ops.max_level = kPreemptLevelDeactivate;
    ops.gating = kGatingDeviceGates;
    ops.append_device_gate = [](void*, const XControlWords*, uint64_t) { return kXSchedSuccess; };
    ops.append_progress = [](void* self, const XControlWords*, uint64_t) {
      return Of(self).takes_reports ? kXSchedSuccess : kXSchedErrorHardware;
    };
    ops.finished = [](void* self) {
      SilentDriver& driver = Of(self);
      driver.asked.fetch_add(1);
      while (!driver.let_go) usleep(1000);
      return driver.finished.load();
    };
    ops.note_urgency = [](void* self, int steps) { Of(self).noted_urgency = steps; };
    ops.apply_urgency = [](void* self) {
      while (!Of(self).let_go) usleep(1000);
      Of(self).urgency = Of(self).noted_urgency.load();
      return kXSchedSuccess;
    };
    ops.synchronize = [](void*) { return kXSchedSuccess; };
    XHwQueueInfo info{};
    info.device = 5;
    info.key = key;
    EXPECT_EQ(HwQueueRegister(&ops, this, &info, &hwq_), kXSchedSuccess);
    EXPECT_EQ(XQueueCreate(&queue, hwq_, kPreemptLevelBlock, 0), kXSchedSuccess);
  }
  ~SilentDriver() {
    let_go = true;
    XQueueDestroy(queue);
    HwQueueDestroy(hwq_);
  }
  static constexpr uint64_t kKey = 0x5000;
  static XQueue* xqueue() { return FindXQueue(kPlatformCUDA, kKey); }
  static void Launch(int count = 1) {
    for (int i = 0; i < count; ++i) LaunchScope(xqueue()).Finish(true);
  }

  std::atomic<bool> let_go{false};
  std::atomic<bool> finished{true};
  std::atomic<bool> takes_reports{true};
  std::atomic<int> asked{0};
  std::atomic<int> noted_urgency{0};
  std::atomic<int> urgency{0};
  XQueueHandle queue = 0;

 private:
  static SilentDriver& Of(void* self) { return *static_cast<SilentDriver*>(self); }
  HwQueueHandle hwq_ = 0;
};

TEST_F(ServerLinkTest, a_driver_that_does_not_answer_keeps_nobody_held) {
  SilentDriver driver;
  auto server = std::make_unique<Peer>(AcceptFirst());
  auto first = server->Receive<ipc::QueueCreated>();
  auto second = server->Receive<ipc::QueueCreated>();
  ASSERT_TRUE(first && second);
  SilentDriver::Launch();
  server->Query(second->index);
  Until([&] { return driver.asked == 1; });
  ASSERT_EQ(driver.asked, 1);
  server->Hold(first->index);
  Launch();
  usleep(10'000);
  EXPECT_EQ(Finished(), 0u);
  // Released by a scheduler that lives.
  server->SetGate(first->index, ipc::kGateRun, ipc::kFlagTracked);
  ASSERT_TRUE(server->Send(ipc::Wake{}));
  EXPECT_LT(Until([&] { return Finished() == 1; }), milliseconds(100));
  // Released because the scheduler ends.
  server->Hold(first->index);
  Launch();
  usleep(10'000);
  server.reset();
  EXPECT_LT(Until([&] { return Finished() == 2; }), milliseconds(100));
  EXPECT_EQ(Finished(), 2u);
}

TEST_F(ServerLinkTest, a_hint_does_not_wait_for_a_driver_for_long) {
  SilentDriver driver;
  SilentDriver less_urgent(SilentDriver::kKey + 1);
  Peer server = AcceptFirst();
  const TimePoint before = MonotonicClock::now();
  ASSERT_EQ(XHintPriority(driver.queue, 3), kXSchedSuccess);
  EXPECT_LT(MonotonicClock::now() - before, milliseconds(100));
  driver.let_go = less_urgent.let_go = true;
  Until([&] { return driver.urgency == 3; });
  EXPECT_EQ(driver.urgency, 3);
}

TEST_F(ServerLinkTest, a_driver_is_not_asked_about_a_queue_while_a_launch_on_it_is_under_way) {
  SilentDriver driver;
  driver.let_go = true;
  Peer server = AcceptFirst();
  ASSERT_TRUE(server.Receive<ipc::QueueCreated>());
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  SilentDriver::Launch();
  {
    LaunchScope under_way(SilentDriver::xqueue());
    server.Query(created->index);
    usleep(50'000);
    EXPECT_EQ(driver.asked, 0);
    under_way.Finish(true);
  }
  server.Query(created->index);
  Until([&] { return server.block(created->index).retired == 2; });
  EXPECT_EQ(server.block(created->index).retired, 2u);
}

TEST_F(ServerLinkTest, the_progress_of_a_full_queue_becomes_known_when_launching_has_paused) {
  SilentDriver driver;
  driver.let_go = true;
  Peer server = AcceptFirst();
  ASSERT_TRUE(server.Receive<ipc::QueueCreated>());
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  SilentDriver::Launch(1005);
  Until([&] {
    server.Query(created->index);
    usleep(2'000);
    return server.block(created->index).retired == 1005;
  });
  EXPECT_EQ(server.block(created->index).retired, 1005u);
}

TEST_F(ServerLinkTest, launches_that_go_through_while_a_thread_waits_for_room_are_counted_as_moves) {
  SilentDriver driver;
  Peer server = AcceptFirst();
  ASSERT_TRUE(server.Receive<ipc::QueueCreated>());
  auto created = server.Receive<ipc::QueueCreated>();
  ASSERT_TRUE(created);
  const auto moves_after_a_question = [&] {
    server.QueryAndAwaitAnswer(created->index);
    return server.block(created->index).moved.load();
  };
  const auto look_during_launches = [&](int count) {
    for (int i = 0; i < count; ++i) {
      LaunchScope under_way(SilentDriver::xqueue());
      moves_after_a_question();
      under_way.Finish(true);
    }
    return server.block(created->index).moved.load();
  };
  SilentDriver::Launch(500);
  EXPECT_EQ(look_during_launches(2), 0u) << "no stream is full with so few commands";
  SilentDriver::Launch(200);
  EXPECT_EQ(look_during_launches(3), 2u) << "a launch has gone through since the last question, twice";
  {
    LaunchScope waits(SilentDriver::xqueue());
    EXPECT_EQ(moves_after_a_question(), 3u);
    EXPECT_EQ(moves_after_a_question(), 3u) << "the same launch waits still";
    waits.Finish(true);
  }
  EXPECT_EQ(moves_after_a_question(), 3u) << "nobody waits for room";
  EXPECT_EQ(look_during_launches(1), 3u) << "the last question found nobody waiting";
}

TEST_F(ServerLinkTest, a_queue_of_a_context_that_failed_leaves_no_slot_behind) {
  for (bool answers : {true, false}) {
    SilentDriver driver;
    driver.let_go = true;
    driver.finished = answers;
    // Suspended once, so that it has gates, which report.
    ASSERT_EQ(XQueueSuspend(driver.queue, kQueueSuspendFlagNone), kXSchedSuccess);
    SilentDriver::Launch(3);
    ASSERT_EQ(XQueueResume(driver.queue, kQueueResumeFlagNone), kXSchedSuccess);
    driver.takes_reports = false;
    DestroyWhenDrained(kPlatformCUDA, SilentDriver::kKey);
    XQueueState state;
    EXPECT_EQ(XQueueQuery(driver.queue, &state), answers ? kXSchedErrorNotFound : kXSchedSuccess);
  }
}

// ---- separate programs: a scheduler from the start, or descriptors that are closed ----

class OwnProcess : public testing::Test {
 protected:
  OwnProcess() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    char folder[] = "/tmp/xsched-link-XXXXXX";
    folder_ = mkdtemp(folder);
    setenv("XSCHED_SOCKET", (folder_ + "/s").c_str(), 1);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder_ + "/s").copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
  }
  ~OwnProcess() override {
    unsetenv("XSCHED_SCHEDULER");
    unlink((folder_ + "/s").c_str());
    rmdir(folder_.c_str());
  }
  Peer Accept() { return Peer(UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))); }

  std::string folder_;
  UniqueFd listener_;
};

// Ends the process: 0 if everything was as expected.
[[noreturn]] void StartBesideAHungServer() {
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  const TimePoint before = MonotonicClock::now();
  bool ok = SoftQueueCreate(&hwq, 5, kPreemptLevelBlock) == kXSchedSuccess &&
            XQueueCreate(&queue, hwq, kPreemptLevelBlock, 0) == kXSchedSuccess &&
            SoftLaunch(hwq, 100, nullptr, nullptr) == kXSchedSuccess &&
            SoftSynchronize(hwq) == kXSchedSuccess;
  // 40 ms, and what a busy machine needs.
  ok = ok && MonotonicClock::now() - before < milliseconds(300);
  _exit(ok ? 0 : 1);
}

TEST_F(OwnProcess, a_program_starts_as_soon_beside_a_server_that_hangs) {
  setenv("XSCHED_SCHEDULER", "GLB", 1);
  EXPECT_EXIT(StartBesideAHungServer(), testing::ExitedWithCode(0), "");
}

// Closes all descriptors that are not the program's, as closefrom does, and opens files with their numbers.
std::vector<UniqueFd> CloseAndOpenFiles(const std::set<int>& known) {
  std::set<int> ours;
  for (int fd = 3; fd < 5000; ++fd) {
    // Not close(2): a thread sanitizer would call it a race with the agent's thread, which it is meant to be.
    if (!known.contains(fd) && syscall(SYS_close, fd) == 0) ours.insert(fd);
  }
  std::vector<UniqueFd> files;
  for (int fd : ours) {
    UniqueFd file(memfd_create("the program's", 0));
    if (file.get() != fd) {
      syscall(SYS_dup3, file.get(), fd, 0);
      file.Reset(fd);
    }
    files.push_back(std::move(file));
  }
  return files;
}

[[noreturn]] void CloseForeignDescriptors(int listener) {
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  SoftQueueCreate(&hwq, 5, kPreemptLevelBlock);
  XQueueCreate(&queue, hwq, kPreemptLevelBlock, 0);
  auto connecting =
      std::async(std::launch::async, [] { return XHintSetScheduler(kSchedulerGlobal, kPolicyUnknown); });
  Peer server(UniqueFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)));
  bool ok = connecting.get() == kXSchedSuccess;
  auto created = server.Receive<ipc::QueueCreated>();
  server.Hold(created->index);
  SoftLaunch(hwq, 100, nullptr, nullptr);
  // The test's own descriptors have low numbers.
  std::set<int> known;
  for (int fd = 3; fd < 200; ++fd) known.insert(fd);
  const std::vector<UniqueFd> files = CloseAndOpenFiles(known);
  ok = ok && files.size() >= 4;
  uint64_t finished = 0;
  const Duration took = Until([&] {
    SoftLaunch(hwq, 1, nullptr, nullptr);
    SoftQueueReport(hwq, &finished, nullptr);
    return finished > 3;
  });
  ok = ok && took < milliseconds(500);
  XHintPriority(queue, 3);
  XQueueSuspend(queue, 0);
  XQueueResume(queue, 0);
  usleep(100'000);
  for (const UniqueFd& file : files) {
    struct stat status {};
    ok = ok && fstat(file.get(), &status) == 0 && status.st_size == 0;
  }
  // No thread polls closed descriptors all the time.
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  usleep(200'000);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const long cpu_ns = (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
  _exit(ok && cpu_ns < 50'000'000 ? 0 : 1);
}

TEST_F(OwnProcess, a_program_that_closes_what_it_does_not_know_keeps_its_files_and_runs_unscheduled) {
  EXPECT_EXIT(CloseForeignDescriptors(listener_.get()), testing::ExitedWithCode(0),
              "closed descriptors that are XSched's: running unscheduled");
}

}  // namespace
}  // namespace xsched::preempt
