#include "server/bells.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "server/event_tag.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

class BellsTest : public ServerParts {
 protected:
  void Ring() const {
    const uint64_t one = 1;
    ASSERT_EQ(write(AgentOf().doorbell.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  Agent& AgentOf() const { return const_cast<BellsTest*>(this)->ServerParts::AgentOf(client_); }
  // What the loop reports of the bell now.
  size_t Events() { return loop_.Wait(0).size(); }
  TimePoint Resume() {
    return bells_.Resume(now_, [&](uint64_t connection) { return agents_.Find(connection); });
  }
  void RingTooOften() {
    for (int i = 0; i < Bells::kMostRings; ++i) ASSERT_TRUE(bells_.Rings(AgentOf(), now_));
    ASSERT_FALSE(bells_.Rings(AgentOf(), now_));
  }

  Client client_ = ConnectAgent({100, 1000, {}});
};

TEST_F(BellsTest, a_bell_that_rings_too_often_is_not_heard_for_a_while_and_then_once) {
  Ring();
  ASSERT_EQ(Events(), 1u);
  RingTooOften();
  Ring();
  EXPECT_EQ(Events(), 0u);
  const TimePoint at = Resume();
  EXPECT_EQ(at, now_ + Bells::kWithin);
  now_ = at;
  EXPECT_EQ(Resume(), kNever);
  EXPECT_EQ(Events(), 1u) << "what it rang for is read";
  EXPECT_TRUE(bells_.Rings(AgentOf(), now_));
  Ring();
  EXPECT_EQ(Events(), 1u) << "it is heard as before";
}

TEST_F(BellsTest, a_bell_that_rings_as_often_over_a_longer_time_is_always_heard) {
  for (int i = 0; i < 10 * Bells::kMostRings; ++i) {
    EXPECT_TRUE(bells_.Rings(AgentOf(), now_));
    now_ += Bells::kWithin / Bells::kMostRings;
  }
}

TEST_F(BellsTest, a_client_that_leaves_while_its_bell_is_muted_is_forgotten) {
  RingTooOften();
  connections_.Close(*client_.connection, nullptr);
  RemoveClosed();
  now_ += Bells::kWithin;
  EXPECT_EQ(Resume(), kNever);
}

TEST_F(BellsTest, a_ring_that_could_not_be_handled_is_reported_again) {
  Ring();
  ASSERT_EQ(Events(), 1u);
  ASSERT_EQ(Events(), 0u);
  bells_.RingAgain(AgentOf());
  EXPECT_EQ(Events(), 1u);
}

}  // namespace
}  // namespace xsched::server::testing
