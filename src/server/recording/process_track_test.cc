// What is recorded of a process on a device: readings in virtual time in, spans out.
#include "server/recording/process_track.h"

#include <gtest/gtest.h>

#include "server/testing/put_events.h"

namespace xsched::server {
namespace {

using namespace std::chrono_literals;

constexpr sched::QueueId kQueueOfProcess{7};

class ProcessTrackTest : public ::testing::Test, protected testing::PutEvents {
 protected:
  void SeeSlice(Duration slice) { track_.SeeSlice(slice, kQueueOfProcess, now_, *this); }
  void SeeTurn(bool has_turn) { track_.SeeTurn(has_turn, kQueueOfProcess, now_, *this); }
  void SeeMemory(uint64_t used, uint64_t limit = 100) {
    track_.SeeMemory({used, limit}, kQueueOfProcess, now_, *this);
  }

  TimePoint now_{1s};
  ProcessTrack track_;
};

TEST_F(ProcessTrackTest, a_slice_is_put_when_it_ends_and_the_drivers_own_is_none) {
  SeeSlice(sched::kDriversSlice);
  now_ += 5ms;
  SeeSlice(100ms);
  EXPECT_TRUE(events_.empty());
  now_ += 7ms;
  SeeSlice(100ms);
  now_ += 3ms;
  SeeSlice(sched::kDriversSlice);
  const auto slice = Take<ipc::RecordedSlice>();
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->queue_id, 7u);
  EXPECT_EQ(slice->at_ns, 1'005'000'000u);
  EXPECT_EQ(slice->span_ns, 10'000'000u);
  EXPECT_EQ(slice->slice_us, 100'000u);
  EXPECT_TRUE(events_.empty());
}

// There may be thousands of changes in a second.
TEST_F(ProcessTrackTest, a_process_that_waits_for_its_turn_off_the_device_keeps_its_slice) {
  SeeSlice(1us);
  for (int turn = 0; turn < 10; ++turn) {
    now_ += 1ms;
    SeeSlice(turn % 2 == 0 ? sched::kNoSlice : Duration(1us));
  }
  EXPECT_TRUE(events_.empty());
  track_.Finish(kQueueOfProcess, now_, *this);
  const auto slice = Take<ipc::RecordedSlice>();
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->span_ns, 10'000'000u);
}

TEST_F(ProcessTrackTest, a_turn_is_put_when_it_is_over) {
  SeeTurn(false);
  SeeTurn(true);
  now_ += 2ms;
  SeeTurn(true);
  EXPECT_TRUE(events_.empty());
  SeeTurn(false);
  SeeTurn(false);
  const auto turn = Take<ipc::RecordedTurn>();
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->at_ns, 1'000'000'000u);
  EXPECT_EQ(turn->span_ns, 2'000'000u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(ProcessTrackTest, memory_is_put_when_another_number_is_read_and_only_with_a_limit) {
  SeeMemory(0, 0);
  now_ += 1ms;
  SeeMemory(30);
  now_ += 2ms;
  SeeMemory(30);
  now_ += 3ms;
  SeeMemory(40);
  const auto memory = Take<ipc::RecordedMemory>();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->at_ns, 1'001'000'000u);
  EXPECT_EQ(memory->span_ns, 5'000'000u);
  EXPECT_EQ(memory->used, 30u);
  EXPECT_EQ(memory->limit, 100u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(ProcessTrackTest, memory_is_read_seldom) {
  EXPECT_TRUE(track_.IsMemoryDue(now_));
  SeeMemory(30);
  EXPECT_FALSE(track_.IsMemoryDue(now_ + 49ms));
  EXPECT_TRUE(track_.IsMemoryDue(now_ + 50ms));
}

TEST_F(ProcessTrackTest, memory_that_no_device_has_does_not_spoil_the_file) {
  SeeMemory(~uint64_t{0}, ~uint64_t{0});
  track_.Finish(kQueueOfProcess, now_, *this);
  const auto memory = Take<ipc::RecordedMemory>();
  ASSERT_TRUE(memory);
  EXPECT_LT(memory->used, uint64_t{1} << 63);
  EXPECT_LT(memory->limit, uint64_t{1} << 63);
}

TEST_F(ProcessTrackTest, what_goes_on_at_the_end_is_put_as_it_is) {
  SeeSlice(2ms);
  SeeTurn(true);
  SeeMemory(5);
  now_ += 4ms;
  track_.Finish(kQueueOfProcess, now_, *this);
  EXPECT_EQ(Take<ipc::RecordedSlice>().value_or(ipc::RecordedSlice{}).span_ns, 4'000'000u);
  EXPECT_EQ(Take<ipc::RecordedTurn>().value_or(ipc::RecordedTurn{}).span_ns, 4'000'000u);
  EXPECT_EQ(Take<ipc::RecordedMemory>().value_or(ipc::RecordedMemory{}).span_ns, 4'000'000u);
  track_.Finish(kQueueOfProcess, now_, *this);
  EXPECT_TRUE(events_.empty());
}

TEST_F(ProcessTrackTest, a_recording_has_only_what_was_after_its_beginning) {
  SeeTurn(true);
  now_ += 10ms;
  SinceSink sink(TimePoint(1s) + 4ms, *this);
  track_.SeeTurn(false, kQueueOfProcess, now_, sink);
  const auto clipped = Take<ipc::RecordedTurn>();
  ASSERT_TRUE(clipped);
  EXPECT_EQ(clipped->at_ns, 0u);
  EXPECT_EQ(clipped->span_ns, 6'000'000u);
  track_.SeeTurn(true, kQueueOfProcess, now_, sink);
  now_ += 1ms;
  track_.SeeTurn(false, kQueueOfProcess, now_, sink);
  const auto whole = Take<ipc::RecordedTurn>();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->at_ns, 6'000'000u);
  EXPECT_EQ(whole->span_ns, 1'000'000u);
}

}  // namespace
}  // namespace xsched::server
