#include "server/agent_outbox.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/limits.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

ipc::ProcessSlice Slice(uint64_t device, uint64_t slice_us) {
  ipc::ProcessSlice slice{};
  slice.device = device;
  slice.slice_us = slice_us;
  return slice;
}

class AgentOutboxTest : public ServerParts {
 protected:
  Connection& connection() { return *client_.connection; }
  // As if the client had not read for long.
  void FillBuffer() {
    while (connection().Send(ipc::Wake{})) {
    }
  }
  // Reads the client's end until all that was kept has been sent; returns its slices.
  std::vector<ipc::ProcessSlice> ReadSlices() {
    std::vector<ipc::ProcessSlice> slices;
    for (bool sent_all = false; !sent_all;) {
      sent_all = outbox_.SendKept(connection());
      while (auto packet = client_.Receive()) {
        if (packet->header().type == ipc::MessageType::kProcessSlice)
          slices.push_back(packet->As<ipc::ProcessSlice>());
        if (packet->header().type == ipc::MessageType::kPong)
          pongs_.push_back(packet->As<ipc::Pong>().cookie);
      }
    }
    return slices;
  }

  Client client_ = Connect({100, 1000, {}});
  AgentOutbox outbox_;
  std::vector<uint64_t> pongs_;
};

TEST_F(AgentOutboxTest, what_there_is_room_for_is_sent_at_once) {
  EXPECT_TRUE(outbox_.SendSlice(connection(), Slice(1, 500)));
  EXPECT_TRUE(outbox_.SendPong(connection(), 7));
  EXPECT_TRUE(outbox_.empty());
  EXPECT_EQ(client_.ReceiveA<ipc::ProcessSlice>()->slice_us, 500u);
  EXPECT_EQ(client_.ReceiveA<ipc::Pong>()->cookie, 7u);
}

TEST_F(AgentOutboxTest, of_the_slices_that_there_is_no_room_for_the_last_one_of_each_device_is_sent_later) {
  FillBuffer();
  for (uint64_t slice = 1; slice <= 1000; ++slice) {
    EXPECT_TRUE(outbox_.SendSlice(connection(), Slice(1, slice)));
    EXPECT_TRUE(outbox_.SendSlice(connection(), Slice(2, slice + 1)));
  }
  EXPECT_FALSE(outbox_.empty());
  EXPECT_FALSE(outbox_.SendKept(connection()));
  const std::vector<ipc::ProcessSlice> slices = ReadSlices();
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].slice_us, 1000u);
  EXPECT_EQ(slices[1].slice_us, 1001u);
  EXPECT_TRUE(outbox_.empty());
}

TEST_F(AgentOutboxTest, a_new_slice_does_not_overtake_one_that_was_kept) {
  FillBuffer();
  ASSERT_TRUE(outbox_.SendSlice(connection(), Slice(1, 100)));
  client_.ReadAll<ipc::Wake>();
  ASSERT_TRUE(outbox_.SendSlice(connection(), Slice(1, 200)));
  const std::vector<ipc::ProcessSlice> slices = ReadSlices();
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].slice_us, 200u);
}

TEST_F(AgentOutboxTest, slices_of_too_many_devices_are_an_error) {
  FillBuffer();
  for (uint64_t device = 0; device < kMaxUnsentSlices; ++device)
    ASSERT_TRUE(outbox_.SendSlice(connection(), Slice(device, 1)));
  EXPECT_FALSE(outbox_.SendSlice(connection(), Slice(kMaxUnsentSlices, 1)));
}

TEST_F(AgentOutboxTest, the_last_ping_is_answered_when_there_is_room_and_too_many_are_an_error) {
  FillBuffer();
  for (int ping = 1; ping <= kMaxUnansweredPings; ++ping)
    ASSERT_TRUE(outbox_.SendPong(connection(), static_cast<uint64_t>(ping)));
  ReadSlices();
  EXPECT_EQ(pongs_, std::vector<uint64_t>{kMaxUnansweredPings});
  FillBuffer();
  for (int ping = 1; ping <= kMaxUnansweredPings; ++ping)
    ASSERT_TRUE(outbox_.SendPong(connection(), 1)) << "the count begins anew when it has read";
  EXPECT_FALSE(outbox_.SendPong(connection(), 1));
}

}  // namespace
}  // namespace xsched::server::testing
