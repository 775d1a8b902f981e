#include "ipc/outbox.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace xsched::ipc {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    here_.Reset(ends[0]);
    there_.Reset(ends[1]);
  }
  bool Say(uint64_t cookie) {
    Ping ping{};
    ping.cookie = cookie;
    return outbox_.Send(here_.get(), ping);
  }
  // Receives all messages that have arrived, and checks that they are in order.
  void Hear() {
    for (Packet packet; ReceivePacket(there_.get(), packet) == Received::kMessage; ++heard_)
      EXPECT_EQ(packet.As<Ping>().cookie, heard_);
  }

  UniqueFd here_;
  UniqueFd there_;
  Outbox outbox_;
  uint64_t heard_ = 0;
};

TEST_F(OutboxTest, what_a_peer_does_not_take_now_comes_later_and_in_order) {
  uint64_t said = 0;
  for (; said < 3000; ++said) ASSERT_TRUE(Say(said));
  EXPECT_NE(outbox_.waiting(), 0u);
  Hear();
  EXPECT_LT(heard_, said);
  // A new message waits behind older ones, although there is room now.
  ASSERT_TRUE(Say(said++));
  while (outbox_.waiting() != 0) {
    ASSERT_TRUE(outbox_.Flush(here_.get()));
    Hear();
  }
  EXPECT_EQ(heard_, said);
  ASSERT_TRUE(Say(said++));
  EXPECT_EQ(outbox_.waiting(), 0u);
  Hear();
  EXPECT_EQ(heard_, said);
}

TEST_F(OutboxTest, is_bounded) {
  size_t said = 0;
  while (Say(said)) ASSERT_LT(++said * sizeof(Ping), 2 * Outbox::kMaxBytes);
  EXPECT_GT(said * sizeof(Ping), Outbox::kMaxBytes);
}

TEST_F(OutboxTest, takes_no_memory_for_what_a_peer_has_taken_that_always_lags_behind) {
  uint64_t said = 0;
  while (outbox_.waiting() < 10 * sizeof(Ping)) ASSERT_TRUE(Say(said++));
  for (int i = 0; i < 10000; ++i) {
    Packet packet;
    ASSERT_EQ(ReceivePacket(there_.get(), packet), Received::kMessage);
    ASSERT_TRUE(outbox_.Flush(here_.get()));
    while (outbox_.waiting() < 10 * sizeof(Ping)) ASSERT_TRUE(Say(said++));
    ASSERT_LE(outbox_.stored(), 2 * outbox_.waiting());
  }
}

TEST_F(OutboxTest, says_when_the_peer_has_gone) {
  while (outbox_.waiting() == 0) ASSERT_TRUE(Say(0));
  there_.Reset();
  EXPECT_FALSE(outbox_.Flush(here_.get()));
  outbox_.Clear();
  EXPECT_FALSE(Say(0));
}

}  // namespace
}  // namespace xsched::ipc
