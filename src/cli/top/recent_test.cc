#include "cli/top/recent.h"

#include <gmock/gmock.h>

#include "ipc/testing/packet_of.h"

namespace xsched::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr uint64_t kQueue = 4;

class RecentTest : public testing::Test {
 protected:
  void Look(Duration at, Duration span) { recent_.BeginLook(TimePoint(at), span); }
  void Burst(Duration at, Duration span, uint32_t flags = 0) {
    ipc::RecordedBurst burst{};
    burst.queue_id = kQueue;
    burst.at_ns = static_cast<uint64_t>(at.count());
    burst.span_ns = static_cast<uint64_t>(span.count());
    burst.flags = flags;
    recent_.Take(PacketOf(burst));
  }

  Recent recent_{3, seconds(1)};
};

TEST_F(RecentTest, each_part_of_time_has_its_longest_request) {
  Look(milliseconds(12'900), seconds(3));
  Burst(milliseconds(200), milliseconds(10));
  Burst(milliseconds(300), milliseconds(30));
  Burst(milliseconds(2'500), milliseconds(20));
  EXPECT_THAT(recent_.RequestsOf(kQueue).longest,
              ElementsAre(milliseconds(30), std::nullopt, milliseconds(20)));
  EXPECT_EQ(recent_.RequestsOf(kQueue).all.count(), 3u);
  EXPECT_EQ(recent_.RequestsOf(99).all.count(), 0u);
}

TEST_F(RecentTest, old_requests_are_forgotten) {
  Look(milliseconds(10'900), seconds(1));
  Burst(milliseconds(100), milliseconds(10));
  Look(milliseconds(12'900), seconds(2));
  EXPECT_THAT(recent_.RequestsOf(kQueue).longest, ElementsAre(milliseconds(10), std::nullopt, std::nullopt));
  Look(milliseconds(13'900), seconds(1));
  EXPECT_EQ(recent_.RequestsOf(kQueue).all.count(), 0u);
}

TEST_F(RecentTest, a_request_that_several_looks_saw_is_one) {
  Look(milliseconds(10'900), seconds(1));
  Burst(milliseconds(900), milliseconds(100), ipc::kBurstCut);
  Look(milliseconds(11'900), seconds(1));
  Burst(milliseconds(0), milliseconds(700), ipc::kBurstCut);
  Burst(milliseconds(700), milliseconds(50), ipc::kBurstContinued);
  EXPECT_THAT(recent_.RequestsOf(kQueue).longest, ElementsAre(std::nullopt, std::nullopt, milliseconds(850)));
}

TEST_F(RecentTest, a_request_that_nobody_saw_end_is_none) {
  Look(milliseconds(10'900), seconds(1));
  Burst(milliseconds(100), milliseconds(100), ipc::kBurstCut);
  Burst(milliseconds(500), milliseconds(40));
  Burst(milliseconds(600), milliseconds(0), ipc::kBurstUnseen);
  EXPECT_EQ(recent_.RequestsOf(kQueue).all.count(), 1u);
  EXPECT_EQ(recent_.RequestsOf(kQueue).all.largest(), milliseconds(40));
}

TEST_F(RecentTest, a_request_that_had_begun_before_anybody_looked_is_none) {
  Look(milliseconds(10'900), seconds(1));
  Burst(milliseconds(0), milliseconds(100), ipc::kBurstContinued | ipc::kBurstCut);
  Burst(milliseconds(100), milliseconds(40), ipc::kBurstContinued);
  EXPECT_EQ(recent_.RequestsOf(kQueue).all.count(), 0u);
}

TEST_F(RecentTest, a_queue_that_has_gone_while_it_was_busy_is_forgotten) {
  Look(milliseconds(10'900), seconds(1));
  Burst(milliseconds(900), milliseconds(100), ipc::kBurstCut);
  Look(milliseconds(11'900), seconds(1));
  Burst(milliseconds(0), milliseconds(1000), ipc::kBurstCut);
  Look(milliseconds(12'900), seconds(1));
  EXPECT_EQ(recent_.known_queues(), 1u) << "the last look saw it";
  Look(milliseconds(13'900), seconds(1));
  EXPECT_EQ(recent_.known_queues(), 0u);
}

TEST_F(RecentTest, waits_are_those_of_the_last_look) {
  ipc::RecordedQueue queue{};
  queue.queue_id = kQueue;
  queue.client_id = 1;
  ipc::RecordedHold hold{};
  hold.queue_id = kQueue;
  hold.span_ns = 5'000'000;
  for (int look = 1; look < 3; ++look) {
    Look(seconds(10 + look), seconds(1));
    recent_.Take(PacketOf(queue));
    recent_.Take(PacketOf(hold));
  }
  EXPECT_EQ(recent_.waits().processes().at(1).waits.begin()->second.time, milliseconds(5));
}

}  // namespace
}  // namespace xsched::cli
