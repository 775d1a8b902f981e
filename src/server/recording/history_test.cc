// What is remembered of the last time, and how much of it: readings in virtual time in, events out.
#include "server/recording/history.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace xsched::server {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kAnn = 1000;
constexpr uid_t kBob = 1001;
constexpr sched::QueueId kQueue{7};

class HistoryTest : public ::testing::Test {
 protected:
  static bool Everybody(uid_t) { return true; }

  void See(uint64_t submitted, uint64_t retired, sched::QueueId queue = kQueue, uid_t uid = kAnn) {
    reading_.submitted = submitted;
    reading_.retired = retired;
    history_.See(queue, uid, reports_, reading_, now_);
  }
  // One burst of a millisecond.
  void Work(sched::QueueId queue = kQueue, uid_t uid = kAnn) {
    See(done_, done_, queue, uid);
    See(done_ + 1, done_, queue, uid);
    now_ += 1ms;
    See(done_ + 1, done_ + 1, queue, uid);
    ++done_;
  }
  template <typename Visible>
  std::vector<History::Event> Read(Duration span, Visible&& visible) {
    std::vector<History::Event> events;
    for (History::Reader& reader : history_.Read(now_ - span, visible)) {
      while (const History::Event* event = reader.Next()) events.push_back(*event);
    }
    return events;
  }
  size_t Count(Duration span = 1h) { return Read(span, Everybody).size(); }
  ipc::RecordedQueue DescriptionOf(sched::QueueId queue, uid_t uid = kAnn) {
    ipc::RecordedQueue description{};
    description.queue_id = static_cast<uint64_t>(queue);
    description.uid = uid;
    return description;
  }

  TimePoint now_{1h};
  History history_{now_, {.of_user = 10, .of_all = 15, .gone_of_user = 3}};
  QueueTrack::Reading reading_;
  bool reports_ = true;
  uint64_t done_ = 0;
};

TEST_F(HistoryTest, a_burst_of_a_queue_that_reports_is_remembered) {
  now_ += 5ms;
  Work();
  const std::vector<History::Event> events = Read(1h, Everybody);
  ASSERT_EQ(events.size(), 1u);
  const auto* burst = std::get_if<ipc::RecordedBurst>(&events[0]);
  ASSERT_NE(burst, nullptr);
  EXPECT_EQ(burst->queue_id, 7u);
  EXPECT_EQ(burst->at_ns, 5'000'000u);
  EXPECT_EQ(burst->span_ns, 1'000'000u);
}

TEST_F(HistoryTest, a_queue_that_reports_nothing_is_not_followed) {
  reports_ = false;
  Work();
  EXPECT_EQ(Count(), 0u);
}

TEST_F(HistoryTest, when_a_queue_stops_reporting_its_burst_ends_there) {
  See(0, 0);
  See(5, 0);
  now_ += 2ms;
  reports_ = false;
  See(5, 0);
  now_ += 1min;
  See(90, 90);
  const std::vector<History::Event> events = Read(1h, Everybody);
  ASSERT_EQ(events.size(), 1u);
  const auto& burst = std::get<ipc::RecordedBurst>(events[0]);
  EXPECT_EQ(burst.span_ns, 2'000'000u);
  EXPECT_TRUE(burst.flags & ipc::kBurstCut);
}

TEST_F(HistoryTest, a_burst_that_began_before_the_queue_reported_is_told_as_the_rest_of_one) {
  See(5, 0);
  now_ += 2ms;
  See(5, 5);
  now_ += 2ms;
  See(6, 5);
  now_ += 2ms;
  See(6, 6);
  const std::vector<History::Event> events = Read(1h, Everybody);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<ipc::RecordedBurst>(events[0]).flags & ipc::kBurstContinued, ipc::kBurstContinued);
  EXPECT_EQ(std::get<ipc::RecordedBurst>(events[1]).flags & ipc::kBurstContinued, 0u);
}

TEST_F(HistoryTest, only_what_ended_in_the_asked_time_is_read) {
  Work();
  now_ += 10ms;
  Work();
  Work();
  EXPECT_EQ(Count(5ms), 2u);
  EXPECT_EQ(Count(500us), 1u) << "it began before, and goes on into this time";
  EXPECT_EQ(Count(), 3u);
}

TEST_F(HistoryTest, what_goes_on_is_told_as_if_it_ended_now) {
  class Sink final : public RecordSink {
   public:
    void Put(const RecordedEvent& event) override { events.push_back(event); }
    std::vector<RecordedEvent> events;
  } sink;
  See(0, 0);
  See(4, 0);
  reading_.why = sched::WaitReason::kHeld;
  reading_.because_of = sched::QueueId{9};
  See(4, 0);
  now_ += 3ms;
  history_.Unfinished(now_, sink, [&](sched::QueueId, uid_t) { return std::optional(reading_); });
  ASSERT_EQ(sink.events.size(), 2u);
  EXPECT_EQ(std::get<ipc::RecordedHold>(sink.events[0]).because_of, 9u);
  EXPECT_EQ(std::get<ipc::RecordedHold>(sink.events[0]).span_ns, 3'000'000u);
  EXPECT_EQ(std::get<ipc::RecordedBurst>(sink.events[1]).span_ns, 3'000'000u);
  EXPECT_EQ(Count(), 0u) << "it has not ended";
}

TEST_F(HistoryTest, of_each_user_the_newest_events_are_kept_and_it_is_known_since_when_they_are_all) {
  EXPECT_EQ(history_.RemembersSince(kAnn), history_.began());
  for (int i = 0; i < 13; ++i) Work();
  EXPECT_EQ(Count(), 10u);
  EXPECT_EQ(history_.RemembersSince(kAnn), history_.began() + 3ms);
}

TEST_F(HistoryTest, a_user_with_many_events_does_not_push_out_those_of_others) {
  for (int i = 0; i < 4; ++i) Work(sched::QueueId{1}, kBob);
  for (int i = 0; i < 100; ++i) Work(kQueue, kAnn);
  EXPECT_EQ(Read(1h, [](uid_t uid) { return uid == kBob; }).size(), 4u);
  EXPECT_EQ(Read(1h, [](uid_t uid) { return uid == kAnn; }).size(), 10u);
}

TEST_F(HistoryTest, of_all_users_together_the_one_with_most_gives_way) {
  for (int i = 0; i < 10; ++i) Work(kQueue, kAnn);
  for (int i = 0; i < 7; ++i) Work(sched::QueueId{1}, kBob);
  EXPECT_EQ(Count(), 15u);
  EXPECT_EQ(Read(1h, [](uid_t uid) { return uid == kBob; }).size(), 7u);
}

TEST_F(HistoryTest,
       the_subordinate_users_of_one_have_its_limit_and_leave_nothing_when_their_events_are_dropped) {
  const std::string file = ::testing::TempDir() + "subuid_of_history_" + std::to_string(getpid());
  std::ofstream(file) << kAnn << ":100000:65536\n";
  History history(now_, {.of_user = 10, .of_all = 15, .gone_of_user = 3}, SubordinateUsers(file));
  unlink(file.c_str());
  const auto work_as = [&](uid_t uid) {
    const sched::QueueId queue{uid};
    QueueTrack::Reading reading;
    history.See(queue, uid, true, reading, now_);
    reading.submitted = 1;
    history.See(queue, uid, true, reading, now_);
    now_ += 1ms;
    reading.retired = 1;
    history.See(queue, uid, true, reading, now_);
    if (history.Gone(queue, reading, now_)) history.KeepDescription(DescriptionOf(queue, uid));
  };
  for (uid_t i = 0; i < 4; ++i) work_as(kBob + i);
  for (uid_t i = 0; i < 50; ++i) work_as(100'000 + i);
  EXPECT_EQ(history.known_users(), 14u);
  EXPECT_EQ(history.Description(sched::QueueId{100'039}, Everybody), nullptr);
  EXPECT_NE(history.Description(sched::QueueId{100'040}, Everybody), nullptr);
  EXPECT_EQ(history.RemembersSince(kAnn), history.began() + 44ms);
  EXPECT_EQ(history.RemembersSince(kBob), history.began());
}

TEST_F(HistoryTest, a_reader_of_a_user_of_whom_all_was_dropped_knows_what_it_lost) {
  History history(now_, {.of_user = 1, .of_all = 2, .gone_of_user = 1});
  const auto work = [&](uint64_t done) {
    history.See(kQueue, kAnn, true, {.submitted = done, .retired = done}, now_);
    history.See(kQueue, kAnn, true, {.submitted = done + 1, .retired = done}, now_);
    history.See(kQueue, kAnn, true, {.submitted = done + 1, .retired = done + 1}, now_);
  };
  work(0);
  std::vector<History::Reader> readers = history.Read(now_, Everybody);
  ASSERT_EQ(readers.size(), 1u);
  work(1);
  EXPECT_EQ(readers[0].Next(), nullptr);
  EXPECT_EQ(readers[0].lost(), 1u);
}

TEST_F(HistoryTest, events_of_users_that_the_reader_may_not_see_are_not_read) {
  Work();
  EXPECT_TRUE(Read(1h, [](uid_t) { return false; }).empty());
}

TEST_F(HistoryTest, what_is_dropped_while_it_is_read_is_counted) {
  for (int i = 0; i < 10; ++i) Work();
  std::vector<History::Reader> readers = history_.Read(now_ - 1h, Everybody);
  ASSERT_EQ(readers.size(), 1u);
  ASSERT_NE(readers[0].Next(), nullptr);
  for (int i = 0; i < 4; ++i) Work();
  size_t rest = 0;
  while (readers[0].Next() != nullptr) ++rest;
  EXPECT_EQ(rest, 6u) << "what came after it was asked for is not read";
  EXPECT_EQ(readers[0].lost(), 3u);
}

TEST_F(HistoryTest, the_description_of_a_queue_that_is_gone_is_kept_as_long_as_its_events) {
  Work();
  ASSERT_TRUE(history_.Gone(kQueue, reading_, now_));
  history_.KeepDescription(DescriptionOf(kQueue));
  for (int i = 0; i < 9; ++i) Work(sched::QueueId{8});
  EXPECT_NE(history_.Description(kQueue, Everybody), nullptr);
  EXPECT_EQ(history_.Description(kQueue, [](uid_t uid) { return uid == kBob; }), nullptr);
  Work(sched::QueueId{8});
  EXPECT_EQ(history_.Description(kQueue, Everybody), nullptr);
}

TEST_F(HistoryTest, a_queue_without_events_leaves_nothing) {
  See(0, 0);
  EXPECT_FALSE(history_.Gone(kQueue, reading_, now_));
  EXPECT_FALSE(history_.Gone(sched::QueueId{8}, reading_, now_)) << "it was never seen";
}

TEST_F(HistoryTest, a_queue_whose_events_are_all_dropped_leaves_nothing) {
  Work();
  const QueueTrack::Reading last = reading_;
  for (int i = 0; i < 10; ++i) Work(sched::QueueId{8});
  EXPECT_FALSE(history_.Gone(kQueue, last, now_));
}

TEST_F(HistoryTest, of_queues_that_are_gone_the_newest_descriptions_are_kept) {
  for (uint64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(history_.RemembersSince(kAnn), history_.began());
    Work(sched::QueueId{id});
    ASSERT_TRUE(history_.Gone(sched::QueueId{id}, reading_, now_));
    history_.KeepDescription(DescriptionOf(sched::QueueId{id}));
  }
  EXPECT_EQ(history_.Description(sched::QueueId{1}, Everybody), nullptr);
  EXPECT_NE(history_.Description(sched::QueueId{2}, Everybody), nullptr);
  EXPECT_EQ(history_.RemembersSince(kAnn), history_.began() + 1ms) << "nobody can say whose the rest was";
}

TEST_F(HistoryTest, turns_of_a_process_are_remembered_with_the_times_of_the_history) {
  const TimePoint began = now_;
  ipc::RecordedTurn turn{};
  turn.queue_id = 7;
  turn.at_ns = RecordedTime(TimePoint{}, began + 2ms);
  turn.span_ns = 3'000'000;
  history_.Keep(kQueue, kAnn, turn);
  const std::vector<History::Event> events = Read(1h, Everybody);
  ASSERT_EQ(events.size(), 1u) << "although its queue has reported nothing";
  const auto* kept = std::get_if<ipc::RecordedTurn>(&events[0]);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->at_ns, 2'000'000u);
  EXPECT_EQ(kept->span_ns, 3'000'000u);
  EXPECT_TRUE(history_.Gone(kQueue, reading_, now_)) << "its description is needed";
}

TEST_F(HistoryTest, without_a_history_nothing_of_a_process_is_remembered) {
  History none(now_, {.of_user = 0});
  none.Keep(kQueue, kAnn, ipc::RecordedTurn{});
  EXPECT_EQ(none.known_users(), 0u);
  EXPECT_FALSE(none.Gone(kQueue, reading_, now_));
}

TEST_F(HistoryTest, commands_in_flight_are_not_remembered) {
  See(1, 0);
  for (int i = 0; i < 5; ++i) {
    now_ += 15ms;
    See(static_cast<uint64_t>(i) + 2, 0);
  }
  EXPECT_EQ(Count(), 0u);
}

}  // namespace
}  // namespace xsched::server
