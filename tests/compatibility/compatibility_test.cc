// Clients of XSched 2.0 (protocol 1.1) and today's server: its recorded bytes are sent again, and the answers
// are those that it got then, as far as it knows them.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "ipc/testing/populated_segment.h"
#include "recording.h"
#include "server/testing/server_fixture.h"

namespace xsched::testing {
namespace {

using server::testing::ServerTest;
using server::testing::TestConnection;
using server::testing::TestTool;

// Bytes that differ from one server, or from one run, to the other.
struct Field {
  size_t offset;
  size_t size;
};
#define FIELD(message, name) \
  { offsetof(ipc::message, name), sizeof(ipc::message::name) }

std::vector<Field> VaryingFields(ipc::MessageType type) {
  switch (type) {
    case ipc::MessageType::kWelcome:
      return {FIELD(Welcome, minor)};
    case ipc::MessageType::kQueueInfo:
      return {FIELD(QueueInfo, pid), FIELD(QueueInfo, uid)};
    case ipc::MessageType::kStatus:
      return {FIELD(Status, minor),     FIELD(Status, pid),       FIELD(Status, uid),
              FIELD(Status, uptime_ns), FIELD(Status, decisions), FIELD(Status, state_changes),
              FIELD(Status, version)};
    default:
      return {};
  }
}

std::string Comparable(const ipc::Packet& packet, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(packet.bytes), std::min(packet.size, size));
  std::vector<Field> varying = VaryingFields(packet.header().type);
  varying.push_back({offsetof(ipc::Header, size), sizeof(ipc::Header::size)});
  for (const Field& field : varying) bytes.replace(field.offset, field.size, field.size, '\0');
  return bytes;
}

class ClientsOf2_0 : public ServerTest {
 protected:
  void Replay() {
    for (const RecordedPacket& recorded : recording_) {
      if (recorded.to_server) {
        Send(recorded);
      } else {
        ExpectAnswer(recorded);
      }
    }
  }

  const std::vector<RecordedPacket> recording_ = ReadRecording(SESSIONS_2_0);

 private:
  void Send(const RecordedPacket& recorded) {
    std::unique_ptr<TestConnection>& client = clients_[recorded.client];
    std::vector<int> fds;
    if (recorded.type() == ipc::MessageType::kHello) {
      client = std::make_unique<TestConnection>(socket());
      if (recorded.client == "agent") fds = {segment_->memfd.get(), bell_.get()};
    }
    ASSERT_TRUE(client->SendBytes(recorded.bytes.data(), recorded.bytes.size(), fds));
    // Before another client is served.
    if (recorded.client == "agent" && fds.empty()) {
      ASSERT_TRUE(client->IsAlive()) << server_.errors();
    }
  }

  void ExpectAnswer(const RecordedPacket& recorded) {
    const std::optional<ipc::Packet> answer = clients_[recorded.client]->Receive();
    ASSERT_TRUE(answer) << server_.errors();
    EXPECT_GE(answer->size, recorded.bytes.size());
    const size_t known = recorded.bytes.size();
    EXPECT_EQ(Comparable(*answer, known), Comparable(recorded.packet(), known))
        << "type " << static_cast<int>(recorded.type());
  }

  Result<ipc::OwnedSegment> segment_ = ipc::PopulatedSegment();
  UniqueFd bell_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::map<std::string, std::unique_ptr<TestConnection>> clients_;
};

TEST_F(ClientsOf2_0, are_answered_as_they_were_then) {
  ASSERT_GT(recording_.size(), 20u);
  Replay();
}

TEST_F(ClientsOf2_0, have_described_their_queue_to_todays_server) {
  Replay();
  const auto queues = TestTool(socket()).List();
  ASSERT_TRUE(queues);
  ASSERT_EQ(queues->size(), 1u) << "the other one was destroyed";
  const ipc::QueueInfo& queue = queues->front();
  // The priority is that of the tool.
  EXPECT_EQ(queue.hints.priority, 5);
  EXPECT_EQ(queue.hints.utilization, 40);
  EXPECT_EQ(queue.hints.deadline_us, 20000);
  EXPECT_EQ(queue.hints.laxity_us, 700);
  EXPECT_EQ(queue.hints.lax_priority, -4);
  EXPECT_EQ(queue.hints.critical_priority, 9);
  EXPECT_EQ(queue.threshold, 12);
  EXPECT_EQ(queue.batch_size, 6);
  EXPECT_EQ(queue.level, static_cast<uint32_t>(kPreemptLevelBlock));
  EXPECT_EQ(queue.absent, 0u);
  EXPECT_STREQ(queue.name, "python3");
  EXPECT_STREQ(queue.device_name, "software device 1");
}

TEST_F(ClientsOf2_0, of_whose_server_todays_tools_read_what_it_knew_and_zero_for_the_rest) {
  int infos = 0;
  for (const RecordedPacket& recorded : recording_) {
    if (recorded.type() != ipc::MessageType::kQueueInfo) continue;
    ++infos;
    ASSERT_LT(recorded.bytes.size(), sizeof(ipc::QueueInfo));
    const auto info = recorded.packet().As<ipc::QueueInfo>();
    EXPECT_EQ(info.queue_id, 1u);
    EXPECT_EQ(info.hints.priority, -3);
    EXPECT_STREQ(info.device_name, "software device 1");
    EXPECT_EQ(info.wait_reason, 0u);
    EXPECT_EQ(info.waiting_since_ns, 0u);
    EXPECT_STREQ(info.waits_for_name, "");
    EXPECT_STREQ(info.container, "");
    EXPECT_STREQ(info.slurm_job, "");
  }
  EXPECT_EQ(infos, 1);
}

}  // namespace
}  // namespace xsched::testing
