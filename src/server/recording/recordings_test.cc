// Recordings: who gets them, what is in them, and what a tool that does not read them costs.
#include "server/recording/recordings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "server/limits.h"
#include "server/process_state.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

using namespace std::chrono_literals;

const Peer kUser{100, 1000, {}};
const Peer kOtherUser{200, 1001, {}};
const Peer kAdmin{300, kServerUser, {}};
constexpr uint16_t kReportsBursts = 5;

class RecordingsTest : public ServerParts {
 protected:
  explicit RecordingsTest(const History::Limits& history = {}) : ServerParts({}, {}, history) {}

  // What the server does after its events.
  void Round() {
    work_.BeginRound();
    RemoveClosed();
    recordings_.Advance(now_);
    RemoveClosed();
    agents_.Decide(now_);
    recordings_.Look(now_);
  }
  // In a round of its own.
  void SendUnread(const Client& tool) {
    work_.BeginRound();
    if (!work_.IsSpent(tool.connection->peer.uid)) recordings_.SendUnread(*tool.connection, now_);
  }
  // Begins to record, and returns the server's answer.
  ipc::Reply Record(const Client& tool, pid_t pid = 0) {
    ipc::Record request{};
    request.pid = pid;
    EXPECT_TRUE(Ask(tool, request));
    Round();
    return ReadUntil<ipc::Reply>(tool).value_or(ipc::Reply{});
  }
  std::optional<ipc::Packet> Next(const Client& tool) {
    std::optional<ipc::Packet> packet = tool.Receive();
    if (packet || !recordings_.IsRecording(*tool.connection)) return packet;
    do SendUnread(tool);
    while (work_.IsSpent(tool.connection->peer.uid));
    return tool.Receive();
  }
  // The next message of type T. What comes before it is kept in read_.
  template <typename T>
  std::optional<T> ReadUntil(const Client& tool) {
    while (const std::optional<ipc::Packet> packet = Next(tool)) {
      read_.push_back(packet->header().type);
      if (packet->header().type == T::kType) return packet->As<T>();
    }
    return std::nullopt;
  }
  void Retire(const Client& agent, uint32_t index) {
    agent.block(index).retired.store(agent.block(index).submitted.load());
    Ring(agent, index);
  }
  // An urgent queue holds mine_, whose process admin_ records, and ends after that time. Returns its id.
  uint64_t HoldByOneThatEndsAfter(Duration time) {
    EXPECT_TRUE(CreateQueue(theirs_, 1, /*priority=*/9, false, 1));
    Record(admin_, mine_.connection->peer.pid);
    const auto urgent = static_cast<uint64_t>(AgentOf(theirs_).queues.at(1).id);
    Submit(theirs_, 1);
    Submit(mine_, 0);
    Round();
    now_ += time;
    connections_.Close(*theirs_.connection, nullptr);
    Round();
    return urgent;
  }
  // The queue has work for so long.
  void Work(const Client& agent, uint32_t index, Duration time) {
    Submit(agent, index);
    Round();
    now_ += time;
    Retire(agent, index);
    Round();
  }
  bool IsCounted(const Client& agent, uint32_t index) {
    return (agent.block(index).flags.load() & ipc::kFlagCounted) != 0;
  }

  // Older clients, which report each burst.
  Client mine_ = ConnectAgent(kUser, 0, kReportsBursts);
  Client theirs_ = ConnectAgent(kOtherUser, 0, kReportsBursts);
  const bool queues_made_ = CreateQueue(mine_, 0, 3, false, 1) && CreateQueue(theirs_, 0, 0, false, 2);
  Client tool_ = ConnectTool(kUser);
  Client admin_ = ConnectTool(kAdmin);
  std::vector<ipc::MessageType> read_;
};

TEST_F(RecordingsTest, a_burst_is_sent_with_the_description_of_its_queue_before_it) {
  ASSERT_TRUE(queues_made_);
  EXPECT_EQ(Record(tool_).count, 1u);
  now_ += 10ms;
  Work(mine_, 0, 4ms);
  const auto burst = ReadUntil<ipc::RecordedBurst>(tool_);
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 10'000'000u);
  EXPECT_EQ(burst->span_ns, 4'000'000u);
  EXPECT_EQ(burst->service_ns, 4'000'000u);
  EXPECT_EQ(burst->retired, 1u);
  EXPECT_EQ(burst->flags, 0u);
  EXPECT_EQ(std::count(read_.begin(), read_.end(), ipc::MessageType::kRecordedQueue), 1);
}

TEST_F(RecordingsTest, a_queue_is_described_as_it_is) {
  ipc::Record request{};
  request.pid = 100;
  ASSERT_TRUE(Ask(admin_, request));
  Round();
  const auto queue = ReadUntil<ipc::RecordedQueue>(admin_);
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->queue_id, static_cast<uint64_t>(AgentOf(mine_).queues.at(0).id));
  EXPECT_EQ(queue->pid, 100);
  EXPECT_EQ(queue->uid, 1000u);
  EXPECT_EQ(queue->device, 1u);
  EXPECT_EQ(queue->hints.priority, 3);
  EXPECT_EQ(queue->level, static_cast<uint32_t>(kPreemptLevelBlock));
}

TEST_F(RecordingsTest, a_recorded_queue_counts_its_bursts_and_no_longer_than_it_is_recorded) {
  Round();
  ASSERT_FALSE(IsCounted(mine_, 0)) << "nobody waits for it";
  Record(tool_);
  EXPECT_TRUE(IsCounted(mine_, 0));
  EXPECT_FALSE(IsCounted(theirs_, 0));
  ASSERT_TRUE(Ask(tool_, ipc::StopRecording{}));
  Round();
  EXPECT_FALSE(IsCounted(mine_, 0));
}

// ---- clients that count their bursts ----

class CountedTest : public RecordingsTest {
 protected:
  ipc::ControlBlock& block() { return counting_.block(0); }
  // A burst of one command, of which nobody is notified.
  void Burst(TimePoint begin, TimePoint end) {
    block().submitted.fetch_add(1);
    ipc::BeginBurst(block(), begin);
    block().retired.fetch_add(1);
    ipc::EndBurst(block(), end);
  }

  Client counting_ = ConnectAgent(kUser);
  const bool counted_queue_made_ = CreateQueue(counting_, 0, 0, false, 7);
};

TEST_F(CountedTest, bursts_are_recorded_when_they_were_although_nobody_rings) {
  ASSERT_TRUE(counted_queue_made_);
  const TimePoint began = now_;
  Record(tool_);
  EXPECT_EQ(block().flags.load(), ipc::kFlagCounted);
  Burst(now_ + 300us, now_ + 400us);
  now_ += Recordings::kLookEvery;
  Round();
  const auto burst = ReadUntil<ipc::RecordedBurst>(tool_);
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->at_ns, 300'000u);
  EXPECT_EQ(burst->span_ns, 100'000u);
  EXPECT_EQ(burst->retired, 1u);
  for (int i = 0; i < 20; ++i) Burst(now_ + i * 100us, now_ + i * 100us + 40us);
  now_ += Recordings::kLookEvery;
  Round();
  const auto several = ReadUntil<ipc::RecordedBurst>(tool_);
  ASSERT_TRUE(several);
  EXPECT_EQ(several->bursts, 20u);
  EXPECT_EQ(several->retired, 20u);
  EXPECT_EQ(several->service_ns, 20u * 40'000);
  EXPECT_GE(began + std::chrono::nanoseconds(several->at_ns), now_ - Recordings::kLookEvery);
}

TEST_F(CountedTest, one_that_launches_no_more_is_asked_for_the_end_of_its_work) {
  Record(tool_);
  block().submitted.fetch_add(1);
  ipc::BeginBurst(block(), now_ + 1ms);
  const uint32_t asked = block().query.load();
  for (int i = 0; i < 3; ++i) {
    now_ += Recordings::kLookEvery;
    Round();
  }
  EXPECT_GT(block().query.load(), asked);
  const uint32_t once = block().query.load();
  for (int i = 0; i < 3; ++i) {
    now_ += Recordings::kLookEvery;
    Round();
  }
  EXPECT_EQ(block().query.load(), once) << "not again and again";
}

TEST_F(CountedTest, a_queue_that_others_wait_for_reports_its_bursts_and_counts_them_again_afterwards) {
  Record(tool_, 100);
  EXPECT_EQ(block().flags.load(), ipc::kFlagCounted);
  ASSERT_TRUE(CreateQueue(theirs_, 1, 5, false, 7));
  Submit(theirs_, 1);
  Submit(counting_, 0);
  Round();
  EXPECT_TRUE(ipc::ReadFlags(block()) & ipc::kFlagGated);
  Retire(theirs_, 1);
  Round();
  now_ += 1s;
  Retire(counting_, 0);
  Round();
  EXPECT_TRUE(ReadUntil<ipc::RecordedBurst>(tool_));
  connections_.Close(*theirs_.connection, nullptr);
  Round();
  EXPECT_EQ(block().flags.load(), ipc::kFlagCounted);
}

TEST_F(RecordingsTest, a_queue_of_two_recordings_is_recorded_until_both_have_ended) {
  Record(tool_);
  Record(admin_);
  ASSERT_TRUE(Ask(tool_, ipc::StopRecording{}));
  Round();
  EXPECT_TRUE(IsCounted(mine_, 0));
  connections_.Close(*admin_.connection, nullptr);
  Round();
  EXPECT_FALSE(IsCounted(mine_, 0));
}

TEST_F(RecordingsTest, a_user_records_its_own_queues_and_an_administrator_all) {
  EXPECT_EQ(Record(tool_).count, 1u);
  EXPECT_EQ(Record(admin_).count, 2u);
  Work(theirs_, 0, 1ms);
  EXPECT_FALSE(ReadUntil<ipc::RecordedBurst>(tool_));
  EXPECT_TRUE(ReadUntil<ipc::RecordedBurst>(admin_));
}

TEST_F(RecordingsTest, a_process_of_another_user_is_as_one_that_does_not_exist) {
  EXPECT_EQ(Record(tool_, 200).count, 0u);
  EXPECT_EQ(Record(tool_, 999).count, 0u);
  EXPECT_FALSE(IsCounted(theirs_, 0));
}

TEST_F(RecordingsTest, only_the_named_processes_are_recorded) {
  EXPECT_EQ(Record(admin_, 200).count, 1u);
  EXPECT_FALSE(IsCounted(mine_, 0));
  EXPECT_EQ(Record(admin_, 100).count, 2u) << "one more";
}

TEST_F(RecordingsTest, queues_that_are_made_later_are_recorded_as_well) {
  Record(tool_, 100);
  ASSERT_TRUE(CreateQueue(mine_, 1, 0));
  ASSERT_TRUE(CreateQueue(theirs_, 1, 0, false, /*device=*/3));
  Round();
  EXPECT_TRUE(IsCounted(mine_, 1));
  EXPECT_FALSE(IsCounted(theirs_, 1));
  Work(mine_, 1, 1ms);
  const auto burst = ReadUntil<ipc::RecordedBurst>(tool_);
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->queue_id, static_cast<uint64_t>(AgentOf(mine_).queues.at(1).id));
}

TEST_F(RecordingsTest, other_hints_are_a_new_description) {
  Record(tool_);
  while (ReadUntil<ipc::RecordedQueue>(tool_)) {
  }
  ipc::QueueHints hints{};
  hints.hints = {7, UTILIZATION_DEFAULT, NO_DEADLINE, NO_LAXITY, 0, 0};
  now_ += 5ms;
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(mine_), PacketOf(hints), now_));
  Round();
  const auto queue = ReadUntil<ipc::RecordedQueue>(tool_);
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->hints.priority, 7);
  EXPECT_EQ(queue->at_ns, 5'000'000u);
  Round();
  EXPECT_FALSE(ReadUntil<ipc::RecordedQueue>(tool_)) << "once";
}

TEST_F(RecordingsTest, a_hold_is_sent_when_it_ends) {
  ASSERT_TRUE(CreateQueue(theirs_, 1, /*priority=*/9, false, 1));
  Record(tool_);
  Submit(theirs_, 1);
  Submit(mine_, 0);
  Round();
  ASSERT_TRUE(mine_.IsHeld(0));
  now_ += 6ms;
  Retire(theirs_, 1);
  Round();
  now_ += 1ms;  // beyond the grace period
  Round();
  ASSERT_FALSE(mine_.IsHeld(0));
  const auto hold = ReadUntil<ipc::RecordedHold>(tool_);
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold->at_ns, 0u);
  EXPECT_EQ(hold->span_ns, 7'000'000u);
  EXPECT_EQ(hold->why, static_cast<uint32_t>(sched::WaitReason::kHeld));
  EXPECT_EQ(hold->because_of, 0u) << "a queue of another user";
}

TEST_F(RecordingsTest, a_hold_names_the_queue_because_of_which_it_is_if_the_tool_may_see_it) {
  ASSERT_TRUE(CreateQueue(theirs_, 1, /*priority=*/9, false, 1));
  Record(admin_);
  Submit(theirs_, 1);
  Submit(mine_, 0);
  Round();
  Retire(theirs_, 1);
  Round();
  now_ += 1ms;
  Round();
  const auto hold = ReadUntil<ipc::RecordedHold>(admin_);
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold->because_of, static_cast<uint64_t>(AgentOf(theirs_).queues.at(1).id));
}

TEST_F(RecordingsTest, a_queue_that_is_not_recorded_is_described_once_if_a_recorded_one_waits_for_it) {
  ASSERT_TRUE(CreateQueue(theirs_, 1, /*priority=*/9, false, 1));
  Record(admin_, mine_.connection->peer.pid);
  const uint64_t urgent = static_cast<uint64_t>(AgentOf(theirs_).queues.at(1).id);
  for (int time = 0; time < 2; ++time) {
    read_.clear();
    Submit(theirs_, 1);
    Submit(mine_, 0);
    Round();
    Retire(theirs_, 1);
    Round();
    now_ += 1ms;
    Round();
    if (time == 0) {
      const auto description = ReadUntil<ipc::RecordedQueue>(admin_);
      ASSERT_TRUE(description);
      EXPECT_EQ(description->queue_id, urgent);
      EXPECT_EQ(description->pid, 200);
    }
    const auto hold = ReadUntil<ipc::RecordedHold>(admin_);
    ASSERT_TRUE(hold);
    EXPECT_EQ(hold->because_of, urgent);
    EXPECT_EQ(std::count(read_.begin(), read_.end(), ipc::MessageType::kRecordedQueue), time == 0 ? 1 : 0);
  }
}

TEST_F(RecordingsTest, a_hold_names_a_queue_whose_end_ends_it) {
  const uint64_t urgent = HoldByOneThatEndsAfter(3ms);
  const auto hold = ReadUntil<ipc::RecordedHold>(admin_);
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold->because_of, urgent);
}

TEST_F(RecordingsTest, the_end_of_a_queue_that_is_only_described_is_sent_so_that_the_tool_can_forget_it) {
  const uint64_t urgent = HoldByOneThatEndsAfter(3ms);
  const auto end = ReadUntil<ipc::RecordedEnd>(admin_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->queue_id, urgent);
  EXPECT_EQ(end->at_ns, 3'000'000u);
}

TEST_F(RecordingsTest, a_later_process_with_the_number_of_a_recorded_one_is_not_recorded) {
  const uint64_t start = StartOf(getpid());
  const Client first = ConnectAgent({.pid = getpid(), .uid = 1000, .started = start});
  ASSERT_TRUE(CreateQueue(first, 0, 0, false, 3));
  EXPECT_EQ(Record(tool_, getpid()).count, 1u);
  const Client later = ConnectAgent({.pid = getpid(), .uid = 1000, .started = start + 1});
  ASSERT_TRUE(CreateQueue(later, 0, 0, false, 4));
  Round();
  EXPECT_TRUE(IsCounted(first, 0));
  EXPECT_FALSE(IsCounted(later, 0));
}

TEST_F(RecordingsTest, a_job_is_recorded_with_the_processes_that_join_it_later_and_no_others) {
  const Client first = ConnectAgent({101, 1000, {}}, /*job=*/7);
  ASSERT_TRUE(CreateQueue(first, 0, 0, false, 3));
  ipc::Record request{};
  request.job = 7;
  ASSERT_TRUE(Ask(tool_, request));
  Round();
  const auto reply = ReadUntil<ipc::Reply>(tool_);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, 1u);
  Client second = ConnectAgent({102, 1000, {}}, /*job=*/7);
  const Client other_users = ConnectAgent({103, 1001, {}}, /*job=*/7);
  ASSERT_TRUE(CreateQueue(second, 0, 0, false, 4));
  ASSERT_TRUE(CreateQueue(other_users, 0, 0, false, 5));
  Round();
  EXPECT_TRUE(IsCounted(first, 0));
  EXPECT_TRUE(IsCounted(second, 0));
  EXPECT_FALSE(IsCounted(other_users, 0));
  EXPECT_FALSE(IsCounted(mine_, 0));
}

// ---- what was ----

class LastTest : public RecordingsTest {
 protected:
  explicit LastTest(const History::Limits& history = {}) : RecordingsTest(history) {}

  // The queue of theirs_ holds that of mine_ for so long.
  void Hold(Duration time, uint32_t index = 0) {
    Submit(theirs_, 1);
    Submit(mine_, index);
    Round();
    now_ += time;
    Round();
    Retire(theirs_, 1);
    Round();
    now_ += 1ms;
    Round();
    Retire(mine_, index);
    Round();
  }
  void Destroy(const Client& agent, uint32_t index) {
    ipc::QueueDestroyed destroyed{};
    destroyed.index = index;
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(agent), PacketOf(destroyed), now_));
    Round();
  }
  // A queue of mine_ that is held for a millisecond, and is gone.
  void HoldOneThatGoes() {
    ASSERT_TRUE(CreateQueue(mine_, 6, 0));
    Submit(theirs_, 1);
    Submit(mine_, 6);
    Round();
    now_ += 1ms;
    Destroy(mine_, 6);
  }
  bool AskForLast(const Client& tool, Duration time) {
    ipc::RecordLast request{};
    request.span_ns = static_cast<uint64_t>(time.count());
    const bool stays = Ask(tool, request);
    Round();
    return stays;
  }
  // Everything that the tool is sent, up to the answer.
  struct Answer {
    std::vector<ipc::RecordedHold> holds;
    std::vector<ipc::RecordedBurst> bursts;
    std::set<uint64_t> described;
    std::optional<ipc::Reply> reply;
  };
  Answer ReadLast(const Client& tool) {
    Answer answer;
    while (!answer.reply) {
      std::optional<ipc::Packet> packet = tool.Receive();
      if (!packet) {
        if (!recordings_.IsRecording(*tool.connection)) break;
        SendUnread(tool);
        continue;
      }
      switch (packet->header().type) {
        case ipc::MessageType::kRecordedQueue:
          answer.described.insert(packet->As<ipc::RecordedQueue>().queue_id);
          break;
        case ipc::MessageType::kRecordedHold:
          answer.holds.push_back(packet->As<ipc::RecordedHold>());
          EXPECT_TRUE(answer.described.contains(answer.holds.back().queue_id));
          break;
        case ipc::MessageType::kRecordedBurst:
          answer.bursts.push_back(packet->As<ipc::RecordedBurst>());
          break;
        case ipc::MessageType::kReply:
          answer.reply = packet->As<ipc::Reply>();
          break;
        default:
          break;
      }
    }
    return answer;
  }

  const bool rival_made_ = CreateQueue(theirs_, 1, /*priority=*/9, false, 1);
};

TEST_F(LastTest, what_was_is_told_although_nobody_recorded_it) {
  ASSERT_TRUE(rival_made_);
  Hold(6ms);
  now_ += 3ms;
  ASSERT_TRUE(AskForLast(admin_, 1s));
  const Answer answer = ReadLast(admin_);
  ASSERT_EQ(answer.holds.size(), 1u);
  EXPECT_EQ(answer.holds[0].at_ns, 990'000'000u);
  EXPECT_EQ(answer.holds[0].span_ns, 7'000'000u);
  EXPECT_EQ(answer.holds[0].because_of, static_cast<uint64_t>(AgentOf(theirs_).queues.at(1).id));
  EXPECT_TRUE(answer.described.contains(answer.holds[0].because_of));
  EXPECT_EQ(answer.bursts.size(), 2u);
  ASSERT_TRUE(answer.reply);
  EXPECT_EQ(answer.reply->result, kXSchedSuccess);
  EXPECT_EQ(answer.reply->count, 10u) << "so many milliseconds has the server been there";
  EXPECT_FALSE(recordings_.IsRecording(*admin_.connection));
}

class WithoutHistoryTest : public LastTest {
 protected:
  WithoutHistoryTest() : LastTest({.of_user = 0}) {}
};

TEST_F(WithoutHistoryTest, nothing_is_told_and_no_time_is_covered) {
  Hold(6ms);
  ASSERT_TRUE(AskForLast(admin_, 1s));
  const Answer answer = ReadLast(admin_);
  EXPECT_EQ(answer.holds.size() + answer.bursts.size(), 0u);
  ASSERT_TRUE(answer.reply);
  EXPECT_EQ(answer.reply->result, kXSchedSuccess);
  EXPECT_EQ(answer.reply->count, 0u);
}

TEST_F(WithoutHistoryTest, nothing_is_told_of_a_process_that_is_recorded) {
  mine_.segment.mapping->header.memory_limit.store(5000);
  Record(admin_);
  now_ += 1s;
  ASSERT_TRUE(AskForLast(tool_, 1s));
  EXPECT_TRUE(ReadLast(tool_).described.empty());
}

TEST_F(WithoutHistoryTest, a_recording_has_the_same_as_with_it) {
  ASSERT_EQ(Record(admin_).result, kXSchedSuccess);
  Hold(6ms);
  const auto hold = ReadUntil<ipc::RecordedHold>(admin_);
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold->span_ns, 7'000'000u);
}

TEST_F(WithoutHistoryTest, a_recording_has_nothing_of_a_process_that_ended_before_it) {
  ipc::SegmentHeader& header = mine_.segment.mapping->header;
  header.memory[0].device.store(AgentOf(mine_).queues.at(0).device);
  const auto memory_in_a_recording = [&](uint64_t limit) {
    header.memory_limit.store(limit);
    header.memory[0].used.store(limit / 2);
    Work(mine_, 0, 1ms);
    now_ += 1s;
    EXPECT_EQ(Record(admin_).result, kXSchedSuccess);
    now_ += 1s;
    Work(mine_, 0, 1ms);
    EXPECT_TRUE(Ask(admin_, ipc::StopRecording{}));
    Round();
    return ReadUntil<ipc::RecordedMemory>(admin_).has_value();
  };
  EXPECT_TRUE(memory_in_a_recording(5000));
  EXPECT_FALSE(memory_in_a_recording(0));
}

TEST_F(LastTest, times_count_from_the_beginning_of_the_asked_time) {
  now_ += 1s;
  Hold(6ms);
  now_ += 3ms;
  ASSERT_TRUE(AskForLast(admin_, 5ms));
  const Answer answer = ReadLast(admin_);
  ASSERT_EQ(answer.holds.size(), 1u);
  EXPECT_EQ(answer.holds[0].at_ns, 0u);
  EXPECT_EQ(answer.holds[0].span_ns, 2'000'000u);
  ASSERT_TRUE(answer.reply);
  EXPECT_EQ(answer.reply->count, 5u);
}

TEST_F(LastTest, a_hold_that_goes_on_is_told_as_it_is) {
  Submit(theirs_, 1);
  Submit(mine_, 0);
  Round();
  now_ += 20ms;
  ASSERT_TRUE(AskForLast(tool_, 1s));
  const Answer answer = ReadLast(tool_);
  ASSERT_EQ(answer.holds.size(), 1u);
  EXPECT_EQ(answer.holds[0].span_ns, 20'000'000u);
}

TEST_F(LastTest, users_are_told_of_their_own_queues_only) {
  Hold(6ms);
  ASSERT_TRUE(AskForLast(tool_, 1s));
  const Answer answer = ReadLast(tool_);
  ASSERT_EQ(answer.holds.size(), 1u);
  EXPECT_EQ(answer.holds[0].because_of, 0u);
  EXPECT_EQ(answer.described, std::set{static_cast<uint64_t>(AgentOf(mine_).queues.at(0).id)});
  EXPECT_EQ(answer.bursts.size(), 1u);
}

TEST_F(LastTest, a_queue_that_is_gone_is_described) {
  Hold(6ms);
  const auto id = static_cast<uint64_t>(AgentOf(mine_).queues.at(0).id);
  connections_.Close(*mine_.connection, nullptr);
  Round();
  ASSERT_TRUE(AskForLast(tool_, 1s));
  const Answer answer = ReadLast(tool_);
  EXPECT_EQ(answer.described, std::set{id});
  EXPECT_EQ(answer.holds.size(), 1u);
}

TEST_F(LastTest, a_burst_that_had_begun_before_the_asked_time_is_told_as_the_rest_of_one) {
  Round();
  Hold(20ms);
  ASSERT_TRUE(AskForLast(tool_, 5ms));
  const Answer late = ReadLast(tool_);
  ASSERT_EQ(late.bursts.size(), 1u);
  EXPECT_EQ(late.bursts[0].at_ns, 0u);
  EXPECT_EQ(late.bursts[0].flags & ipc::kBurstContinued, ipc::kBurstContinued);
  ASSERT_TRUE(AskForLast(tool_, 1s));
  const Answer all = ReadLast(tool_);
  ASSERT_EQ(all.bursts.size(), 1u);
  EXPECT_EQ(all.bursts[0].flags & ipc::kBurstContinued, 0u);
}

TEST_F(LastTest, a_long_answer_is_sent_in_parts_and_the_tool_may_ask_again) {
  for (int i = 0; i < 1000; ++i) Hold(1ms);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(AskForLast(admin_, 10s));
    const Answer answer = ReadLast(admin_);
    EXPECT_EQ(answer.holds.size(), 1000u);
    ASSERT_TRUE(answer.reply);
  }
}

TEST_F(LastTest, a_tool_that_is_being_answered_is_told_nothing_else) {
  for (int i = 0; i < 1000; ++i) Hold(1ms);
  ASSERT_TRUE(AskForLast(admin_, 10s));
  ASSERT_TRUE(AskForLast(admin_, 10s));
  size_t refused = 0;
  for (int i = 0; i < 2; ++i) {
    const Answer answer = ReadLast(admin_);
    ASSERT_TRUE(answer.reply);
    refused += answer.reply->result == kXSchedErrorNotAllowed;
  }
  EXPECT_EQ(refused, 1u);
}

TEST_F(LastTest, a_time_with_more_queues_that_are_gone_than_are_remembered_is_not_covered) {
  now_ += 1s;
  for (size_t i = 0; i <= kMaxGoneInHistory; ++i) HoldOneThatGoes();
  ASSERT_TRUE(AskForLast(tool_, 10s));
  const Answer answer = ReadLast(tool_);
  EXPECT_EQ(answer.described.size(), kMaxGoneInHistory);
  ASSERT_TRUE(answer.reply);
  EXPECT_EQ(answer.reply->count, kMaxGoneInHistory) << "a millisecond of each";
  EXPECT_EQ(recordings_.dropped(), 0u);
}

TEST_F(LastTest, events_of_queues_that_nobody_can_describe_take_no_more_than_a_users_share_of_a_round) {
  ASSERT_TRUE(CreateQueue(mine_, 5, 0));
  for (uint64_t i = 0; i < 4 * WorkBudget::kPerRound; ++i) Hold(1ms, 5);
  Destroy(mine_, 5);
  for (size_t i = 0; i < kMaxGoneInHistory; ++i) HoldOneThatGoes();
  for (int i = 0; i < 100; ++i) work_.BeginRound();
  ASSERT_TRUE(AskForLast(tool_, 1h));
  EXPECT_FALSE(tool_.Receive());
  EXPECT_TRUE(work_.IsSpent(kUser.uid));
  const Answer answer = ReadLast(tool_);
  EXPECT_EQ(answer.described.size(), kMaxGoneInHistory);
  EXPECT_TRUE(answer.reply);
}

// ---- waits, ends and losses ----

TEST_F(RecordingsTest, all_recordings_of_a_user_together_are_sent_no_more_than_its_share_of_a_round) {
  constexpr uint32_t kQueues = 40;
  for (uint32_t i = 1; i < kQueues; ++i) ASSERT_TRUE(CreateQueue(mine_, i, 3));
  std::vector<Client> tools;
  for (size_t i = 0; i < kMaxRecordingsOfUser; ++i) Record(tools.emplace_back(ConnectTool(kUser)));
  const auto read_all = [&] {
    int bursts = 0;
    for (const Client& tool : tools) bursts += tool.ReadAll<ipc::RecordedBurst>();
    return bursts;
  };
  for (uint32_t i = 0; i < kQueues; ++i) Submit(mine_, i);
  const auto let_all_be_sent = [&] {
    int bursts = 0;
    for (int round = 0; round < 1000; ++round) {
      for (const Client& tool : tools) SendUnread(tool);
      bursts += read_all();
    }
    return bursts;
  };
  Round();
  let_all_be_sent();
  now_ += 1ms;
  for (uint32_t i = 0; i < kQueues; ++i) Retire(mine_, i);
  Round();
  const int in_one_round = read_all();
  EXPECT_GT(in_one_round, 0);
  EXPECT_LE(in_one_round, static_cast<int>(WorkBudget::kPerRound / WorkBudget::kSent));
  EXPECT_EQ(in_one_round + let_all_be_sent(), static_cast<int>(kQueues * kMaxRecordingsOfUser));
}

// Level 3 on device 9: two equal processes take turns behind a more urgent one, which is idle.
class SlicesTest : public RecordingsTest {
 protected:
  SlicesTest() {
    EXPECT_TRUE(CreateQueue(mine_, 5, 0, /*time_slices=*/true, kGpu));
    EXPECT_TRUE(CreateQueue(theirs_, 5, 0, /*time_slices=*/true, kGpu));
    EXPECT_TRUE(CreateQueue(urgent_, 5, 10, /*time_slices=*/true, kGpu));
  }
  // Both have work all the time, in commands of a millisecond.
  void TakeTurns(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += 1ms) {
      for (const Client* each : {&mine_, &theirs_}) {
        each->block(5).submitted.fetch_add(1);
        Retire(*each, 5);
        Submit(*each, 5);
      }
      Round();
    }
  }
  template <typename T>
  std::vector<T> Take(const Client& tool) {
    std::vector<T> all;
    while (const auto one = ReadUntil<T>(tool)) all.push_back(*one);
    return all;
  }
  // The two work one after the other, and never wait for each other. Returns their turns.
  std::vector<ipc::RecordedTurn> TakeTurnsAlone(int times) {
    Record(admin_);
    for (int i = 0; i < times; ++i) {
      Work(i % 2 == 0 ? mine_ : theirs_, 5, 1ms);
      now_ += 20ms;
      Round();
    }
    EXPECT_TRUE(Ask(admin_, ipc::StopRecording{}));
    Round();
    return Take<ipc::RecordedTurn>(admin_);
  }
  // Reads all that the tool is sent. Returns which queues it is about, by the type of the message.
  std::map<ipc::MessageType, std::set<uint64_t>> QueuesIn(const Client& tool) {
    std::map<ipc::MessageType, std::set<uint64_t>> queues;
    const auto note = [&]<typename... T>(const ipc::Packet& packet, std::variant<T...>*) {
      const auto note_one = [&]<typename One>(One*) {
        if constexpr (requires(One one) { one.queue_id; }) {
          if (packet.header().type == One::kType) queues[One::kType].insert(packet.As<One>().queue_id);
        }
      };
      (note_one(static_cast<T*>(nullptr)), ...);
    };
    while (const auto packet = Next(tool)) note(*packet, static_cast<RecordedEvent*>(nullptr));
    return queues;
  }
  void LimitMemory(const Client& client) {
    ipc::SegmentHeader& header = client.segment.mapping->header;
    header.memory_limit.store(5000);
    header.memory[0].device.store(kGpu);
    header.memory[0].used.store(3000);
  }
  uint64_t QueueOf(const Client& client) { return static_cast<uint64_t>(AgentOf(client).queues.at(5).id); }

  static constexpr uint64_t kGpu = 9;
  Client urgent_ = ConnectAgent({400, 1001, {}}, 0, kReportsBursts);
};

TEST_F(SlicesTest, turns_of_processes_follow_each_other_without_a_gap) {
  Record(admin_);
  TakeTurns(300ms);
  ASSERT_TRUE(Ask(admin_, ipc::StopRecording{}));
  Round();
  const std::vector<ipc::RecordedTurn> turns = Take<ipc::RecordedTurn>(admin_);
  ASSERT_GE(turns.size(), 3u);
  std::set<uint64_t> queues;
  for (size_t i = 0; i < turns.size(); ++i) {
    queues.insert(turns[i].queue_id);
    if (i == 0) continue;
    EXPECT_EQ(turns[i].at_ns, turns[i - 1].at_ns + turns[i - 1].span_ns);
    EXPECT_NE(turns[i].queue_id, turns[i - 1].queue_id);
  }
  EXPECT_EQ(queues, (std::set{QueueOf(mine_), QueueOf(theirs_)}));
}

TEST_F(SlicesTest, turns_change_also_between_processes_that_never_wait_for_each_other) {
  const std::vector<ipc::RecordedTurn> turns = TakeTurnsAlone(6);
  ASSERT_EQ(turns.size(), 6u);
  for (size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(turns[i].queue_id, QueueOf(i % 2 == 0 ? mine_ : theirs_));
    EXPECT_EQ(turns[i].at_ns, 21'000'000 * i);
    EXPECT_EQ(turns[i].span_ns, 21'000'000u);
  }
}

TEST_F(SlicesTest, a_turn_is_recorded_when_it_ends_though_a_queue_of_its_process_has_gone) {
  ASSERT_TRUE(CreateQueue(mine_, 4, 0, /*time_slices=*/true, kGpu));
  Round();
  ipc::QueueDestroyed destroyed{};
  destroyed.index = 4;
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(mine_), PacketOf(destroyed), now_));
  Round();
  const std::vector<ipc::RecordedTurn> turns = TakeTurnsAlone(4);
  ASSERT_EQ(turns.size(), 4u);
  for (const ipc::RecordedTurn& turn : turns) EXPECT_EQ(turn.span_ns, 21'000'000u);
}

TEST_F(SlicesTest, a_slice_is_sent_once_however_often_turns_change) {
  Record(admin_);
  TakeTurns(300ms);
  ASSERT_TRUE(Ask(admin_, ipc::StopRecording{}));
  Round();
  const std::vector<ipc::RecordedSlice> slices = Take<ipc::RecordedSlice>(admin_);
  ASSERT_EQ(slices.size(), 3u);
  std::map<uint64_t, uint64_t> of;
  for (const ipc::RecordedSlice& slice : slices) of[slice.queue_id] = slice.slice_us;
  EXPECT_EQ(of, (std::map<uint64_t, uint64_t>{
                    {QueueOf(mine_), 1}, {QueueOf(theirs_), 1}, {QueueOf(urgent_), 100'000}}));
}

TEST_F(SlicesTest, a_user_is_sent_slices_turns_and_memory_of_its_own_processes_only) {
  const std::set own{static_cast<uint64_t>(AgentOf(mine_).queues.at(0).id), QueueOf(mine_)};
  const auto expect_only_mine = [&](const std::map<ipc::MessageType, std::set<uint64_t>>& queues) {
    using enum ipc::MessageType;
    for (const ipc::MessageType type : {kRecordedBurst, kRecordedSlice, kRecordedTurn, kRecordedMemory})
      EXPECT_TRUE(queues.contains(type)) << static_cast<int>(type);
    for (const auto& [type, ids] : queues) {
      for (const uint64_t id : ids) EXPECT_TRUE(own.contains(id)) << static_cast<int>(type);
    }
  };
  for (const Client* each : {&mine_, &theirs_}) LimitMemory(*each);
  Record(tool_);
  TakeTurns(300ms);
  ASSERT_TRUE(Ask(tool_, ipc::StopRecording{}));
  Round();
  expect_only_mine(QueuesIn(tool_));
  ipc::RecordLast request{};
  request.span_ns = 100'000'000;
  ASSERT_TRUE(Ask(tool_, request));
  Round();
  expect_only_mine(QueuesIn(tool_));
}

TEST_F(SlicesTest, turns_and_slices_are_remembered_without_a_recording) {
  TakeTurns(300ms);
  ipc::RecordLast request{};
  request.span_ns = 100'000'000;
  ASSERT_TRUE(Ask(admin_, request));
  Round();
  std::vector<ipc::RecordedTurn> turns;
  uint64_t slices = 0;
  uint64_t covered = 0;
  for (;;) {
    const std::optional<ipc::Packet> packet = admin_.Receive();
    if (!packet) break;
    if (packet->header().type == ipc::MessageType::kRecordedTurn) {
      turns.push_back(packet->As<ipc::RecordedTurn>());
      covered += turns.back().span_ns;
    }
    slices += packet->header().type == ipc::MessageType::kRecordedSlice;
  }
  EXPECT_GE(turns.size(), 2u);
  EXPECT_EQ(covered, 100'000'000u) << "of the asked time only, and all of it";
  EXPECT_EQ(slices, 3u) << "also those that go on";
}

TEST_F(SlicesTest, slices_that_ended_are_remembered_if_slices_alone_divide_the_device) {
  scheduler_.SetPolicy(*sched::FindPolicy(kPolicyUtilizationPartition));
  Client second = ConnectAgent({101, 1000, {}}, 0, kReportsBursts);
  for (const Client* each : {&mine_, &second})
    ASSERT_TRUE(CreateQueue(*each, 6, 0, /*time_slices=*/true, kGpu + 1));
  Round();
  now_ += 50ms;
  ASSERT_FALSE(AgentOf(mine_).queues.at(6).words.tracked()) << "nobody waits for it, so it reports nothing";
  const auto queue = static_cast<uint64_t>(AgentOf(mine_).queues.at(6).id);
  connections_.Close(*mine_.connection, nullptr);
  Round();
  ipc::RecordLast request{};
  request.span_ns = 100'000'000;
  ASSERT_TRUE(Ask(tool_, request));
  Round();
  const std::vector<ipc::RecordedSlice> slices = Take<ipc::RecordedSlice>(tool_);
  const auto found = std::ranges::find(slices, queue, &ipc::RecordedSlice::queue_id);
  ASSERT_NE(found, slices.end());
  EXPECT_EQ(found->span_ns, 50'000'000u);
}

TEST_F(RecordingsTest, memory_is_sent_when_a_change_of_it_is_read) {
  ipc::SegmentHeader& header = mine_.segment.mapping->header;
  header.memory_limit.store(5000);
  header.memory[0].device.store(1);
  header.memory[0].used.store(3000);
  now_ += 1s;
  Record(tool_);
  now_ += 60ms;
  header.memory[0].used.store(4000);
  Work(mine_, 0, 4ms);
  const auto first = ReadUntil<ipc::RecordedMemory>(tool_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->used, 3000u);
  EXPECT_EQ(first->limit, 5000u);
  EXPECT_EQ(first->at_ns, 0u);
  EXPECT_EQ(first->span_ns, 60'000'000u);
  now_ += 10ms;
  connections_.Close(*mine_.connection, nullptr);
  Round();
  const auto last = ReadUntil<ipc::RecordedMemory>(tool_);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->used, 4000u);
  EXPECT_EQ(last->span_ns, 14'000'000u);
}

TEST_F(RecordingsTest, memory_that_goes_on_is_told_of_a_process_whose_queue_reports_nothing) {
  ipc::SegmentHeader& header = mine_.segment.mapping->header;
  header.memory_limit.store(5000);
  header.memory[0].device.store(1);
  header.memory[0].used.store(3000);
  Round();
  ASSERT_FALSE(AgentOf(mine_).queues.at(0).words.tracked());
  now_ += 1h;
  for (const Client* tool : {&tool_, &admin_}) {
    ipc::RecordLast request{};
    request.span_ns = 30'000'000'000;
    ASSERT_TRUE(Ask(*tool, request));
    Round();
    const auto memory = ReadUntil<ipc::RecordedMemory>(*tool);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->queue_id, static_cast<uint64_t>(AgentOf(mine_).queues.at(0).id));
    EXPECT_EQ(memory->used, 3000u);
    EXPECT_EQ(memory->span_ns, request.span_ns);
  }
}

TEST_F(RecordingsTest, what_goes_on_of_a_process_ends_with_its_last_queue_on_the_device) {
  ipc::SegmentHeader& header = mine_.segment.mapping->header;
  header.memory_limit.store(5000);
  ASSERT_TRUE(CreateQueue(mine_, 1, 0));
  Record(tool_);
  for (uint32_t index : {0u, 1u}) Work(mine_, index, 1ms);
  ipc::QueueDestroyed destroyed{};
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(mine_), PacketOf(destroyed), now_));
  Round();
  EXPECT_FALSE(ReadUntil<ipc::RecordedMemory>(tool_)) << "another queue is left";
  destroyed.index = 1;
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(mine_), PacketOf(destroyed), now_));
  Round();
  EXPECT_TRUE(ReadUntil<ipc::RecordedMemory>(tool_));
}

TEST_F(RecordingsTest, a_wait_for_another_queue_is_sent) {
  ASSERT_TRUE(CreateQueue(mine_, 1, 0));
  Record(tool_);
  Submit(mine_, 1);
  ipc::WriteWait(mine_.segment.mapping->depends[0][0], {.queue = 1, .generation = 0, .until = 1});
  Submit(mine_, 0);
  Round();
  const auto wait = ReadUntil<ipc::RecordedWait>(tool_);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->queue_id, static_cast<uint64_t>(AgentOf(mine_).queues.at(0).id));
  EXPECT_EQ(wait->waits_for, static_cast<uint64_t>(AgentOf(mine_).queues.at(1).id));
  EXPECT_EQ(wait->until, 1u);
}

TEST_F(RecordingsTest, the_end_of_a_queue_is_sent_after_what_it_did) {
  Record(tool_);
  Submit(mine_, 0);
  Round();
  now_ += 2ms;
  ipc::QueueDestroyed destroyed{};
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(mine_), PacketOf(destroyed), now_));
  Round();
  const auto burst = ReadUntil<ipc::RecordedBurst>(tool_);
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->span_ns, 2'000'000u);
  const auto end = ReadUntil<ipc::RecordedEnd>(tool_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->at_ns, 2'000'000u);
}

TEST_F(RecordingsTest, the_end_of_a_process_is_the_end_of_its_queues) {
  Record(tool_);
  connections_.Close(*mine_.connection, nullptr);
  Round();
  EXPECT_TRUE(ReadUntil<ipc::RecordedEnd>(tool_));
}

TEST_F(RecordingsTest, a_recording_that_is_stopped_ends_with_what_goes_on_and_a_reply) {
  Record(tool_);
  Submit(mine_, 0);
  Round();
  now_ += 3ms;
  ASSERT_TRUE(Ask(tool_, ipc::StopRecording{}));
  Round();
  const auto burst = ReadUntil<ipc::RecordedBurst>(tool_);
  ASSERT_TRUE(burst);
  EXPECT_EQ(burst->span_ns, 3'000'000u);
  EXPECT_TRUE(burst->flags & ipc::kBurstCut);
  const auto reply = ReadUntil<ipc::Reply>(tool_);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, 0u) << "nothing was lost";
  EXPECT_FALSE(recordings_.IsRecording(*tool_.connection));
  ASSERT_TRUE(Ask(tool_, ipc::GetStatus{}));
  EXPECT_TRUE(ReadUntil<ipc::Status>(tool_)) << "it is a tool as any other";
}

TEST_F(RecordingsTest, a_queue_with_work_is_asked_when_launching_pauses_and_while_it_retires_nothing) {
  Record(tool_);
  Submit(mine_, 0);
  Round();
  const auto asked = [&] { return ipc::ReadQuery(mine_.block(0)); };
  const uint32_t before = asked();
  now_ += Recordings::kLookEvery;
  Round();
  EXPECT_EQ(asked(), before + 1);
  now_ += Recordings::kLookEvery;
  Round();
  EXPECT_EQ(asked(), before + 1) << "it may need time";
  now_ += Recordings::kAskEvery;
  Round();
  EXPECT_EQ(asked(), before + 2);
  Retire(mine_, 0);
  Round();
  EXPECT_EQ(recordings_.Advance(now_), kNever) << "nobody has work";
}

TEST_F(RecordingsTest, many_queues_are_asked_in_parts_and_charged_to_who_records_them) {
  constexpr uint32_t kQueues = 300;
  for (uint32_t i = 1; i < kQueues; ++i) ASSERT_TRUE(CreateQueue(mine_, i, 3));
  for (uint32_t i = 0; i < kQueues; ++i) Submit(mine_, i);
  Record(tool_);
  const auto asked = [&] {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < kQueues; ++i) sum += ipc::ReadQuery(mine_.block(i));
    return sum;
  };
  for (int i = 0; i < 100; ++i) work_.BeginRound();
  ASSERT_FALSE(work_.IsSpent(kUser.uid));
  now_ += Recordings::kLookEvery;
  const uint32_t before = asked();
  Round();
  EXPECT_EQ(asked() - before, kMaxAskedPerRound);
  EXPECT_TRUE(work_.IsSpent(kUser.uid));
  EXPECT_EQ(recordings_.Look(now_), now_) << "the next round follows at once";
  Round();
  Round();
  EXPECT_EQ(asked() - before, kQueues);
  EXPECT_GT(recordings_.Look(now_), now_);
}

TEST_F(RecordingsTest, a_request_to_record_is_charged_for_queues_that_are_recorded_already) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  Record(tool_, 100);
  for (int round = 0; round < 10'000; ++round) work_.BeginRound();
  ASSERT_FALSE(work_.IsSpent(kUser.uid));
  ipc::Record again{};
  again.pid = 100;
  for (int request = 0; request < 2; ++request) ASSERT_TRUE(Ask(tool_, again));
  EXPECT_TRUE(work_.IsSpent(kUser.uid));
}

TEST_F(RecordingsTest, a_tool_that_does_not_read_loses_a_counted_number_of_records_and_delays_nobody) {
  Record(tool_);
  read_.clear();
  constexpr int kBursts = static_cast<int>(kMaxUnreadRecords) + 1000;
  for (int i = 0; i < kBursts; ++i) {
    now_ += 1ms;
    Work(mine_, 0, 1ms);
  }
  uint64_t bursts = 0;
  while (ReadUntil<ipc::RecordedBurst>(tool_)) ++bursts;
  now_ += 1ms;
  Work(mine_, 0, 1ms);
  const auto loss = ReadUntil<ipc::RecordedLoss>(tool_);
  ASSERT_TRUE(loss);
  EXPECT_EQ(bursts + loss->lost, static_cast<uint64_t>(kBursts));
  EXPECT_GE(bursts, kMaxUnreadRecords);
  EXPECT_TRUE(ReadUntil<ipc::RecordedBurst>(tool_)) << "it goes on";
  ASSERT_TRUE(Ask(tool_, ipc::StopRecording{}));
  Round();
  const auto reply = ReadUntil<ipc::Reply>(tool_);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, loss->lost);
}

TEST_F(RecordingsTest, a_tool_that_reads_nothing_for_30_s_is_disconnected) {
  Record(tool_);
  for (int i = 0; i < 2000; ++i) Work(mine_, 0, 1ms);
  const TimePoint blocked = now_;
  now_ = blocked + kUnreadRecordTimeout - 3s;
  Round();
  EXPECT_TRUE(recordings_.IsRecording(*tool_.connection));
  now_ = blocked + kUnreadRecordTimeout;
  Round();
  EXPECT_FALSE(IsCounted(mine_, 0));
}

TEST_F(RecordingsTest, a_tool_that_leaves_costs_nothing_more) {
  Record(tool_);
  Submit(mine_, 0);
  Round();
  tool_.socket.Reset();
  Retire(mine_, 0);
  Round();
  Round();
  EXPECT_FALSE(IsCounted(mine_, 0));
  EXPECT_EQ(recordings_.Look(now_), kNever);
}

TEST_F(RecordingsTest, a_tool_that_records_is_answered_nothing_else) {
  Record(tool_);
  ASSERT_TRUE(Ask(tool_, ipc::GetStatus{}));
  Round();
  const auto reply = ReadUntil<ipc::Reply>(tool_);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, static_cast<uint32_t>(kXSchedErrorNotAllowed));
}

TEST_F(RecordingsTest, a_tool_that_asks_on_and_reads_nothing_is_disconnected) {
  ASSERT_TRUE(Ask(tool_, ipc::Record{}));
  int answered = 0;
  while (answered < 100'000 && Ask(tool_, ipc::GetStatus{})) ++answered;
  EXPECT_LT(answered, 5000);
}

TEST_F(RecordingsTest, a_user_makes_a_limited_number_of_recordings_at_a_time) {
  std::vector<Client> tools;
  for (size_t i = 0; i < kMaxRecordingsOfUser; ++i) {
    tools.push_back(ConnectTool(kUser));
    EXPECT_EQ(Record(tools.back()).result, static_cast<uint32_t>(kXSchedSuccess));
  }
  EXPECT_EQ(Record(tool_).result, static_cast<uint32_t>(kXSchedErrorNotAllowed));
  EXPECT_EQ(Record(admin_).result, static_cast<uint32_t>(kXSchedSuccess)) << "another user";
}

TEST_F(RecordingsTest, wrong_requests_are_answered) {
  EXPECT_EQ(Record(tool_, -1).result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
  ASSERT_TRUE(Ask(tool_, ipc::StopRecording{}));
  const auto reply = tool_.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
}

}  // namespace
}  // namespace xsched::server::testing
