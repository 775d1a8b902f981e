// What is recorded of a queue: readings in virtual time in, messages out.
#include "server/recording/queue_track.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/testing/put_events.h"

namespace xsched::server {
namespace {

using namespace std::chrono_literals;

constexpr sched::QueueId kQueue{7};

class QueueTrackTest : public ::testing::Test, protected testing::PutEvents {
 protected:
  void Put(const RecordedEvent& event) override {
    if (const auto* counted = std::get_if<ipc::RecordedInFlight>(&event)) {
      counted_.emplace_back(counted->at_ns / 1'000'000, counted->commands);
    } else {
      PutEvents::Put(event);
    }
  }

  void Begin() { track_.emplace(kQueue, began_, reading_, QueueTrack::Before::kReported, now_); }
  void See(uint64_t submitted, uint64_t retired) {
    reading_.submitted = submitted;
    reading_.retired = retired;
    track_->See(reading_, now_, *this);
  }
  // The client counts its bursts: so many have ended in all, with this sum of lengths, and the last one began
  // then.
  void SeeCounted(uint64_t submitted, uint64_t retired, uint32_t ended, Duration busy, TimePoint began) {
    reading_.counted = ipc::Bursts{ended, busy, began};
    See(submitted, retired);
  }
  // The same of a queue that reports. `goes_on`: the last one has not ended.
  void SeeReported(uint64_t submitted, uint64_t retired, uint32_t ended, Duration busy, TimePoint began,
                   bool goes_on) {
    reading_.reports = true;
    reading_.counted = ipc::Bursts{ended, busy, began, goes_on};
    See(submitted, retired);
  }
  void BeginReported() {
    reading_.counted = ipc::Bursts{};
    reading_.reports = true;
    Begin();
  }
  // The queue works alone for so long.
  void Work(Duration time) {
    now_ += time;
    reading_.service += time;
  }
  // From the beginning on, one of 2 ms, which is seen to end before its client has counted the end.
  void SeeBurstBeforeItsEndIsCounted() {
    BeginReported();
    SeeReported(1, 0, 0, {}, now_, true);
    Work(2ms);
    SeeReported(1, 1, 0, {}, began_, true);
  }

  const TimePoint began_{1h};
  TimePoint now_ = began_;
  QueueTrack::Reading reading_;
  std::optional<QueueTrack> track_;
  std::vector<std::pair<uint64_t, uint64_t>> counted_;  // commands in flight, with the millisecond
};

TEST_F(QueueTrackTest, a_burst_is_from_ready_to_idle_with_its_commands_and_its_device_time) {
  Begin();
  now_ += 5ms;
  See(12, 0);
  Work(2ms);
  See(20, 9);
  Work(1ms);
  See(20, 20);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->queue_id, 7u);
  EXPECT_EQ(burst->at_ns, 5'000'000u);
  EXPECT_EQ(burst->span_ns, 3'000'000u);
  EXPECT_EQ(burst->launched, 20u);
  EXPECT_EQ(burst->retired, 20u);
  EXPECT_EQ(burst->service_ns, 3'000'000u);
  EXPECT_EQ(burst->waiting_ns, 0u);
  EXPECT_EQ(burst->flags, 0u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, work_from_before_the_recording_counts_from_its_beginning) {
  reading_.submitted = 100;
  reading_.retired = 90;
  Begin();
  Work(4ms);
  See(101, 101);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 0u);
  EXPECT_EQ(burst->launched, 11u);
  EXPECT_EQ(burst->retired, 11u);
}

TEST_F(QueueTrackTest, a_queue_that_has_not_reported_is_recorded_from_its_first_report_on) {
  reading_.submitted = 100'000;
  track_.emplace(kQueue, began_, reading_, QueueTrack::Before::kSkip, now_);
  Work(4ms);
  See(100'010, 0);
  Work(1ms);
  See(100'011, 100'006);
  Work(5ms);
  See(100'011, 100'011);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 5'000'000u);
  EXPECT_EQ(burst->retired, 5u);
  EXPECT_EQ(burst->service_ns, 5'000'000u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_burst_can_begin_before_the_first_report_and_its_commands_count_from_that_on) {
  reading_.submitted = 100'000;
  track_.emplace(kQueue, began_, reading_, QueueTrack::Before::kTime, now_);
  Work(4ms);
  See(100'010, 100'006);
  Work(1ms);
  See(100'012, 100'012);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 0u);
  EXPECT_EQ(burst->span_ns, 5'000'000u);
  EXPECT_EQ(burst->retired, 6u);
  EXPECT_EQ(burst->launched, 6u);
}

TEST_F(QueueTrackTest, a_queue_that_has_not_reported_and_goes_leaves_no_record) {
  reading_.submitted = 5;
  track_.emplace(kQueue, began_, reading_, QueueTrack::Before::kSkip, now_);
  Work(4ms);
  track_->Finish(reading_, now_, *this);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_burst_that_nobody_saw_is_recorded_without_a_length) {
  Begin();
  now_ += 5ms;
  See(3, 3);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 5'000'000u);
  EXPECT_EQ(burst->span_ns, 0u);
  EXPECT_EQ(burst->retired, 3u);
  EXPECT_EQ(burst->flags, ipc::kBurstUnseen);
}

TEST_F(QueueTrackTest, a_long_burst_is_cut_every_100_ms_and_no_command_is_lost) {
  Begin();
  See(64, 0);
  uint64_t retired = 0;
  for (int i = 0; i < 26; ++i) {
    Work(10ms);
    retired += 10;
    See(64 + retired, retired);
  }
  Work(6ms);
  See(324, 324);
  std::vector<ipc::RecordedBurst> parts;
  while (auto part = Take<ipc::RecordedBurst>()) parts.push_back(*part);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].flags, ipc::kBurstCut);
  EXPECT_EQ(parts[1].flags, ipc::kBurstCut | ipc::kBurstContinued);
  EXPECT_EQ(parts[2].flags, ipc::kBurstContinued);
  EXPECT_EQ(parts[1].at_ns, 100'000'000u);
  EXPECT_EQ(parts[1].span_ns, 100'000'000u);
  EXPECT_EQ(parts[0].retired, 100u);
  EXPECT_EQ(parts[0].retired + parts[1].retired + parts[2].retired, 324u);
  EXPECT_EQ(parts[0].launched + parts[1].launched + parts[2].launched, 324u);
}

TEST_F(QueueTrackTest, a_command_longer_than_100_ms_is_one_burst) {
  Begin();
  See(1, 0);
  for (int i = 0; i < 50; ++i) {
    Work(10ms);
    See(1, 0);
  }
  See(1, 1);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->span_ns, 500'000'000u);
  EXPECT_EQ(burst->flags, 0u);
}

TEST_F(QueueTrackTest, a_hold_is_recorded_where_the_queue_has_work) {
  Begin();
  reading_.why = sched::WaitReason::kHeld;
  reading_.because_of = sched::QueueId{9};
  See(0, 0);
  EXPECT_TRUE(events_.empty()) << "an idle queue that is held waits for nobody";
  See(4, 0);
  now_ += 3ms;
  reading_.waiting += 3ms;
  reading_.why = sched::WaitReason::kNone;
  See(4, 0);
  const auto hold = Take<ipc::RecordedHold>();
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold->at_ns, 0u);
  EXPECT_EQ(hold->span_ns, 3'000'000u);
  EXPECT_EQ(hold->why, static_cast<uint32_t>(sched::WaitReason::kHeld));
  EXPECT_EQ(hold->because_of, 9u);
  Work(4ms);
  See(4, 4);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->waiting_ns, 3'000'000u);
  EXPECT_EQ(burst->service_ns, 4'000'000u);
  EXPECT_EQ(burst->flags, 0u) << "all of its time is accounted for";
}

TEST_F(QueueTrackTest, a_hold_ends_where_another_one_begins_for_another_reason) {
  Begin();
  reading_.why = sched::WaitReason::kHeld;
  reading_.because_of = sched::QueueId{9};
  See(4, 0);
  now_ += 3ms;
  reading_.because_of = sched::QueueId{10};
  See(4, 0);
  now_ += 2ms;
  reading_.why = sched::WaitReason::kOffDevice;
  See(4, 0);
  now_ += 1ms;
  reading_.why = sched::WaitReason::kStalled;  // it runs
  See(4, 0);
  const auto first = Take<ipc::RecordedHold>();
  const auto second = Take<ipc::RecordedHold>();
  const auto third = Take<ipc::RecordedHold>();
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->because_of, 9u);
  EXPECT_EQ(first->span_ns, 3'000'000u);
  EXPECT_EQ(second->because_of, 10u);
  EXPECT_EQ(second->at_ns, 3'000'000u);
  EXPECT_EQ(third->why, static_cast<uint32_t>(sched::WaitReason::kOffDevice));
  EXPECT_EQ(third->span_ns, 1'000'000u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, device_time_that_others_had_a_part_of_is_marked) {
  Begin();
  See(4, 0);
  now_ += 4ms;
  reading_.service += 2ms;
  See(4, 4);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->flags, ipc::kBurstShared);
}

// ---- bursts that the client counts ----

TEST_F(QueueTrackTest, a_counted_burst_begins_and_ends_when_the_client_says_and_not_when_it_is_looked_at) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 2ms;
  SeeCounted(3, 0, 0, {}, began_ + 1500us);
  now_ += 2ms;
  SeeCounted(3, 3, 1, 700us, began_ + 1500us);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 1'500'000u);
  EXPECT_EQ(burst->span_ns, 700'000u);
  EXPECT_EQ(burst->service_ns, 700'000u);
  EXPECT_EQ(burst->retired, 3u);
  EXPECT_EQ(burst->bursts, 1u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, one_that_began_and_ended_between_two_looks_is_known_as_well) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 2ms;
  SeeCounted(4, 4, 1, 300us, began_ + 1ms);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 1'000'000u);
  EXPECT_EQ(burst->span_ns, 300'000u);
  EXPECT_EQ(burst->flags, 0u);
}

TEST_F(QueueTrackTest,
       several_between_two_looks_are_one_record_with_their_number_and_the_sum_of_their_lengths) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 2ms;
  SeeCounted(22, 21, 10, 1ms, began_ + 1900us);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->bursts, 10u);
  EXPECT_EQ(burst->at_ns, 0u);
  EXPECT_EQ(burst->span_ns, 1'900'000u) << "until the one that goes on";
  EXPECT_EQ(burst->service_ns, 1'000'000u);
  EXPECT_EQ(burst->retired, 21u);
  now_ += 2ms;
  SeeCounted(22, 22, 11, 1200us, began_ + 1900us);
  const auto last = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->at_ns, 1'900'000u);
  EXPECT_EQ(last->span_ns, 200'000u);
  EXPECT_EQ(last->retired, 1u);
}

TEST_F(QueueTrackTest, of_several_the_one_that_went_on_at_the_last_look_is_a_record_of_its_own) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 2ms;
  SeeCounted(3, 0, 0, {}, began_ + 1ms);
  now_ += 50ms;
  SeeCounted(3, 1, 0, {}, began_ + 1ms);
  now_ += 2ms;
  SeeCounted(5, 5, 2, 51500us, began_ + 53500us);
  const auto first = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bursts, 1u);
  EXPECT_EQ(first->at_ns, 1'000'000u);
  EXPECT_EQ(first->span_ns, 51'250'000u) << "both had the half of what was after the last look";
  EXPECT_EQ(first->retired, 3u);
  const auto second = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->at_ns, 53'500'000u);
  EXPECT_EQ(second->span_ns, 250'000u);
  EXPECT_EQ(second->retired, 2u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_reported_burst_that_begins_before_the_end_of_another_is_read_is_another_one) {
  BeginReported();
  SeeReported(1, 0, 0, {}, now_, true);
  now_ += 1ms;
  reading_.why = sched::WaitReason::kHeld;
  See(1, 0);
  now_ += 3ms;
  reading_.waiting += 3ms;
  reading_.why = sched::WaitReason::kNone;
  See(1, 0);
  Take<ipc::RecordedHold>();
  Work(2ms);
  reading_.service += 1ms;
  SeeReported(2, 1, 1, 5900us, now_ - 50us, true);
  const auto first = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at_ns, 0u);
  EXPECT_EQ(first->span_ns, 5'900'000u);
  EXPECT_EQ(first->service_ns, 3'000'000u) << "what it was charged for";
  EXPECT_EQ(first->waiting_ns, 3'000'000u);
  EXPECT_EQ(first->retired, 1u);
  Work(1ms);
  SeeReported(2, 2, 2, 6900us, now_ - 1050us, false);
  const auto second = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->at_ns, 6'000'000u);
  EXPECT_EQ(second->span_ns, 1'000'000u);
  EXPECT_EQ(second->retired, 1u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_reported_burst_ends_when_it_is_seen_to_although_its_end_is_counted_later) {
  SeeBurstBeforeItsEndIsCounted();
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->span_ns, 2'000'000u);
  now_ += 1ms;
  SeeReported(1, 1, 1, 2100us, began_, false);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_late_end_is_not_that_of_the_burst_that_has_begun_meanwhile) {
  SeeBurstBeforeItsEndIsCounted();
  ASSERT_TRUE(Take<ipc::RecordedBurst>());
  now_ += 10ms;
  SeeReported(4, 1, 1, 12ms, now_, true);
  EXPECT_TRUE(events_.empty());
  Work(3ms);
  SeeReported(4, 4, 2, 15ms, now_ - 3ms, false);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 12'000'000u);
  EXPECT_EQ(burst->span_ns, 3'000'000u);
  EXPECT_EQ(burst->service_ns, 3'000'000u);
  EXPECT_EQ(burst->launched, 3u);
  EXPECT_EQ(burst->retired, 3u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_late_end_and_a_whole_burst_between_two_looks_are_one_burst) {
  SeeBurstBeforeItsEndIsCounted();
  ASSERT_TRUE(Take<ipc::RecordedBurst>());
  now_ += 10us;
  Work(50us);
  SeeReported(2, 2, 2, 2ms + 55us, now_ - 50us, false);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->span_ns, 55'000u) << "the 5 us before the late end cannot be told apart";
  EXPECT_EQ(burst->service_ns, 50'000u);
  EXPECT_EQ(burst->retired, 1u);
  EXPECT_EQ(burst->bursts, 1u);
  EXPECT_TRUE(events_.empty());
}

// For the client it was one burst, because it had noticed no end in between.
TEST_F(QueueTrackTest, one_end_of_what_was_seen_to_be_two_bursts_is_that_of_the_second) {
  SeeBurstBeforeItsEndIsCounted();
  ASSERT_TRUE(Take<ipc::RecordedBurst>());
  now_ += 10ms;
  SeeReported(2, 1, 0, {}, began_, true);
  Work(1ms);
  SeeReported(2, 2, 1, 13ms, began_, false);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 12'000'000u);
  EXPECT_EQ(burst->span_ns, 1'000'000u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, device_time_of_bursts_that_ended_between_two_looks_is_kept) {
  BeginReported();
  SeeReported(1, 0, 0, {}, now_, true);
  Work(2ms);
  SeeReported(2, 2, 2, 2ms, now_ - 1ms, false);
  for (int i = 0; i < 2; ++i) {
    const auto burst = Take<ipc::RecordedBurst>();
    ASSERT_TRUE(burst);
    EXPECT_EQ(burst->span_ns, 1'000'000u);
    EXPECT_EQ(burst->service_ns, 1'000'000u);
    EXPECT_EQ(burst->retired, 1u);
  }
  now_ += 1ms;
  Work(200us);
  SeeReported(3, 3, 3, 2200us, now_ - 200us, false);
  const auto unseen = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(unseen);
  EXPECT_EQ(unseen->span_ns, 200'000u);
  EXPECT_EQ(unseen->service_ns, 200'000u);
  now_ += 1ms;
  reading_.service += 400us;
  SeeReported(7, 7, 7, 3ms, now_ - 200us, false);
  uint64_t service = 0;
  for (int i = 0; i < 4; ++i) {
    const auto burst = Take<ipc::RecordedBurst>();
    ASSERT_TRUE(burst);
    EXPECT_EQ(burst->span_ns, 200'000u);
    EXPECT_EQ(burst->flags, ipc::kBurstShared);
    service += burst->service_ns;
  }
  EXPECT_EQ(service, 400'000u) << "others had the half of the device";
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_reported_burst_that_is_over_at_the_first_look_has_its_length) {
  BeginReported();
  now_ += 2ms;
  SeeReported(1, 1, 0, {}, now_ - 30us, true);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 1'970'000u);
  EXPECT_EQ(burst->span_ns, 30'000u);
  EXPECT_EQ(burst->flags & ipc::kBurstUnseen, 0u);
  now_ += 10us;
  SeeReported(1, 1, 1, 35us, now_ - 40us, false);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_burst_does_not_begin_before_the_first_report_from_which_its_queue_is_recorded) {
  reading_.counted = ipc::Bursts{};
  reading_.submitted = 5;
  track_.emplace(kQueue, began_, reading_, QueueTrack::Before::kSkip, now_);
  now_ += 50ms;
  SeeCounted(5, 1, 0, {}, TimePoint());
  now_ += 2ms;
  SeeCounted(6, 6, 2, 1ms, now_ - 1ms);
  const auto first = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at_ns, 50'000'000u);
  EXPECT_EQ(first->span_ns, 500'000u);
}

TEST_F(QueueTrackTest, a_client_that_counts_nonsense_makes_few_records) {
  BeginReported();
  SeeReported(1, 0, 0, {}, now_, true);
  Work(1ms);
  SeeReported(2, 2, 3'000'000'000u, Duration::max(), TimePoint::max(), true);
  EXPECT_LE(events_.size(), 16u);
  uint64_t span = 0;
  while (const auto burst = Take<ipc::RecordedBurst>()) span += burst->span_ns;
  EXPECT_LE(span, 1'000'000u);
}

TEST_F(QueueTrackTest, an_end_that_is_counted_late_is_no_second_burst) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 2ms;
  SeeCounted(1, 0, 0, {}, began_ + 1ms);
  now_ += 2ms;
  SeeCounted(1, 1, 0, {}, began_ + 1ms);
  EXPECT_TRUE(events_.empty()) << "it comes with the next look";
  now_ += 2ms;
  SeeCounted(1, 1, 0, {}, began_ + 1ms);
  ASSERT_TRUE(Take<ipc::RecordedBurst>()) << "it does not come";
  now_ += 2ms;
  SeeCounted(1, 1, 1, 2ms, began_ + 1ms);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, the_rest_of_a_burst_that_was_cut_ends_when_the_client_says) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 2ms;
  SeeCounted(9, 0, 0, {}, began_ + 1ms);
  now_ += 100ms;
  SeeCounted(9, 5, 0, {}, began_ + 1ms);
  const auto first = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->flags, ipc::kBurstCut);
  now_ += 50ms;
  SeeCounted(9, 9, 1, 120ms, began_ + 1ms);
  const auto rest = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->flags, ipc::kBurstContinued);
  EXPECT_EQ(rest->at_ns, 102'000'000u);
  EXPECT_EQ(rest->span_ns, 19'000'000u);
}

TEST_F(QueueTrackTest, a_client_that_counts_nonsense_makes_no_record_outside_of_the_time_between_two_looks) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 2ms;
  SeeCounted(1, 1, ~0u, Duration::max(), TimePoint::max());
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 0u);
  EXPECT_LE(burst->span_ns, 2'000'000u);
  EXPECT_LE(burst->service_ns, burst->span_ns);
  EXPECT_LE(burst->bursts, 1024u);
  now_ += 2ms;
  SeeCounted(2, 2, 0, Duration::zero(), TimePoint());
  const auto other = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(other);
  EXPECT_GE(other->at_ns, 2'000'000u);
  EXPECT_LE(other->at_ns + other->span_ns, 4'000'000u);
}

TEST_F(QueueTrackTest, each_wait_is_recorded_once_when_it_begins) {
  Begin();
  reading_.waits_for = {sched::QueueId{9}, 30};
  See(1, 0);
  now_ += 1ms;
  See(2, 0);
  const auto wait = Take<ipc::RecordedWait>();
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->waits_for, 9u);
  EXPECT_EQ(wait->until, 30u);
  EXPECT_EQ(wait->at_ns, 0u);
  reading_.waits_for = {};
  See(2, 0);
  EXPECT_TRUE(events_.empty());
  reading_.waits_for = {sched::QueueId{9}, 31};
  See(2, 0);
  EXPECT_TRUE(Take<ipc::RecordedWait>());
}

TEST_F(QueueTrackTest, what_goes_on_at_the_end_is_recorded_as_it_is) {
  Begin();
  See(10, 0);
  Work(2ms);
  reading_.why = sched::WaitReason::kHeld;
  See(10, 2);
  now_ += 3ms;
  track_->Finish(reading_, now_, *this);
  const auto hold = Take<ipc::RecordedHold>();
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold->span_ns, 3'000'000u);
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->retired, 2u);
  EXPECT_EQ(burst->launched, 10u);
  EXPECT_TRUE(burst->flags & ipc::kBurstCut);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, commands_of_a_burst_that_has_ended_are_no_further_burst_at_the_end) {
  reading_.counted = ipc::Bursts{};
  Begin();
  now_ += 5ms;
  SeeCounted(5, 3, 1, 4ms, now_ - 4ms);
  ASSERT_TRUE(Take<ipc::RecordedBurst>());
  now_ += 1ms;
  SeeCounted(5, 3, 1, 4ms, now_ - 5ms);
  now_ += 1ms;
  track_->Finish(reading_, now_, *this);
  EXPECT_TRUE(events_.empty());
}

TEST_F(QueueTrackTest, a_client_that_writes_nonsense_makes_no_record_that_cannot_be_read) {
  reading_.submitted = 50;
  Begin();
  See(~uint64_t{0}, 0);
  Work(1ms);
  See(~uint64_t{0}, ~uint64_t{0});
  const auto burst = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->retired, uint64_t{1} << 48);
  See(3, 0);
  Work(1ms);
  See(3, 3);
  const auto smaller = Take<ipc::RecordedBurst>();
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->retired, 0u) << "less than before is no progress";
}

TEST_F(QueueTrackTest, commands_in_flight_are_put_when_they_change_in_a_burst_and_every_10_ms_at_most) {
  Begin();
  See(1, 0);
  for (uint64_t ms = 1; ms <= 35; ++ms) {
    Work(1ms);
    See(ms < 25 ? ms + 1 : 26, ms < 25 ? ms : 24);
  }
  EXPECT_EQ(counted_, (std::vector<std::pair<uint64_t, uint64_t>>{{10, 1}, {25, 2}}));
}

TEST_F(QueueTrackTest, short_bursts_have_no_record_of_their_commands_in_flight) {
  Begin();
  for (uint64_t burst = 0; burst < 30; ++burst) {
    See(burst + 1, burst);
    Work(5ms);
    See(burst + 1, burst);
    See(burst + 1, burst + 1);
  }
  EXPECT_TRUE(counted_.empty());
}

}  // namespace
}  // namespace xsched::server
