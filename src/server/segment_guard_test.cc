// What a client leaves out of its segment, or takes away from it, is never made by the server.
#include "server/segment_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "ipc/testing/populated_segment.h"

namespace xsched::server {
namespace {

constexpr uint64_t kConnection = 7;

class SegmentGuardTest : public ::testing::Test {
 protected:
  // The server's mapping of a client's segment.
  struct Mapped {
    ipc::MappedSegment segment;
    SegmentGuard::Watched guarded;
  };

  void SetUp() override {
    if (!guard_.works()) GTEST_SKIP() << "no userfaultfd here";
  }
  Mapped Map(const ipc::OwnedSegment& client, uint64_t connection = kConnection) {
    Mapped mapped{std::move(*ipc::MapSegment(client.memfd.get())), {}};
    mapped.guarded = std::move(*guard_.Watch(*mapped.segment.get(), connection));
    return mapped;
  }
  static blkcnt_t MemoryOf(const ipc::OwnedSegment& client) {
    struct stat status {};
    EXPECT_EQ(fstat(client.memfd.get(), &status), 0);
    return status.st_blocks;
  }
  static void TakeAway(const ipc::OwnedSegment& client) {
    EXPECT_EQ(fallocate(client.memfd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, ipc::kSegmentSize),
              0);
  }
  static std::vector<uint64_t> Torn() {
    std::vector<uint64_t> torn;
    SegmentGuard::TakeTorn([&](uint64_t connection) { torn.push_back(connection); });
    return torn;
  }

  SegmentGuard guard_;
};

TEST_F(SegmentGuardTest, what_both_ends_write_into_pages_that_are_there_is_shared) {
  const ipc::OwnedSegment client = ipc::PopulatedSegment();
  const Mapped server = Map(client);
  server.segment->blocks[500].gate = ipc::kGateRun;
  EXPECT_EQ(client.mapping->blocks[500].gate, ipc::kGateRun);
  client.mapping->blocks[900].submitted = 3;
  EXPECT_EQ(server.segment->blocks[900].submitted, 3u);
  EXPECT_TRUE(Torn().empty());
}

TEST_F(SegmentGuardTest, a_page_that_the_client_has_left_out_is_not_made) {
  const ipc::OwnedSegment client = std::move(*ipc::CreateSegment());
  const blkcnt_t before = MemoryOf(client);
  const Mapped server = Map(client);
  EXPECT_EQ(server.segment->depends[3][0].until, 0u);
  server.segment->blocks[500].gate = ipc::kGateRun;
  EXPECT_EQ(server.segment->blocks[500].gate, ipc::kGateRun) << "the server goes on";
  EXPECT_EQ(MemoryOf(client), before);
  EXPECT_EQ(Torn(), std::vector<uint64_t>{kConnection});
  EXPECT_TRUE(Torn().empty()) << "it is said once";
}

TEST_F(SegmentGuardTest, a_page_that_the_client_takes_away_is_not_made_again) {
  const ipc::OwnedSegment client = ipc::PopulatedSegment();
  const ipc::OwnedSegment other = ipc::PopulatedSegment();
  const Mapped server = Map(client);
  const Mapped beside = Map(other, 8);
  server.segment->blocks[0].gate = ipc::kGateRun;
  TakeAway(client);
  server.segment->blocks[0].gate = ipc::kGateRun;
  beside.segment->blocks[0].gate = ipc::kGateRun;
  EXPECT_EQ(MemoryOf(client), 0);
  EXPECT_EQ(Torn(), std::vector<uint64_t>{kConnection});
}

// So a call takes no longer than there are segments, whatever becomes of them meanwhile.
TEST_F(SegmentGuardTest, a_segment_is_visited_once_in_a_call_and_what_is_torn_meanwhile_in_the_next) {
  const ipc::OwnedSegment client = std::move(*ipc::CreateSegment());
  const Mapped server = Map(client);
  server.segment->blocks[0].gate = ipc::kGateRun;
  int visits = 0;
  const auto tear_another_page = [&](uint64_t connection) {
    EXPECT_EQ(connection, kConnection);
    if (++visits < 3) server.segment->blocks[400 * visits].gate = ipc::kGateRun;
  };
  SegmentGuard::TakeTorn(tear_another_page);
  EXPECT_EQ(visits, 1);
  SegmentGuard::TakeTorn(tear_another_page);
  EXPECT_EQ(visits, 2);
}

TEST_F(SegmentGuardTest, to_map_a_segment_makes_none_of_its_pages) {
  const ipc::OwnedSegment client = ipc::PopulatedSegment();
  TakeAway(client);
  EXPECT_FALSE(ipc::MapSegment(client.memfd.get()));
  EXPECT_EQ(MemoryOf(client), 0);
}

TEST_F(SegmentGuardTest, a_segment_that_has_gone_is_said_of_nobody) {
  const ipc::OwnedSegment client = std::move(*ipc::CreateSegment());
  {
    const Mapped server = Map(client);
    server.segment->blocks[500].gate = ipc::kGateRun;
  }
  EXPECT_TRUE(Torn().empty());
}

}  // namespace
}  // namespace xsched::server
