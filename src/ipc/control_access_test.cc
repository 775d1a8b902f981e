#include "ipc/control_access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "ipc/segment.h"
#include "sched/core/types.h"

namespace xsched::ipc {
namespace {

constexpr SchedulerWords kHeld{kGateHold, kFlagTracked | kFlagGated};

class ControlAccess : public testing::Test {
 protected:
  ControlAccess() : owned_(std::move(*CreateSegment())) {}

  Segment& segment() { return *owned_.mapping.get(); }
  ControlBlock& block(uint32_t index = 0) { return segment().blocks[index]; }
  std::vector<Wait> Waits(uint32_t index) {
    std::vector<Wait> waits;
    ForEachWait(segment(), index, [&](const Wait& wait) { waits.push_back(wait); });
    return waits;
  }

  OwnedSegment owned_;
};

// ---- the client's side ----

TEST_F(ControlAccess, launches_are_numbered_from_one_and_read_back) {
  EXPECT_EQ(CountSubmitted(block()), 1u);
  EXPECT_EQ(CountSubmitted(block()), 2u);
  EXPECT_EQ(ReadSubmitted(block()), 2u);
  EXPECT_EQ(ReadProgress(block()).submitted, 2u);
}

TEST_F(ControlAccess, retired_only_rises_and_whoever_raises_it_is_told_so) {
  EXPECT_TRUE(RaiseRetired(block(), 5));
  EXPECT_FALSE(RaiseRetired(block(), 5));
  EXPECT_FALSE(RaiseRetired(block(), 4));
  EXPECT_EQ(ReadRetired(block()), 5u);
  EXPECT_TRUE(RaiseRetired(block(), 6));
}

TEST_F(ControlAccess, of_threads_that_report_the_same_progress_one_raises_it) {
  constexpr uint64_t kCommands = 20000;
  std::atomic<uint64_t> raised{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (uint64_t number = 1; number <= kCommands; ++number) raised += RaiseRetired(block(), number);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(raised, kCommands);
  EXPECT_GE(raised, 1u);
  EXPECT_EQ(ReadRetired(block()), kCommands);
}

TEST_F(ControlAccess, a_client_reads_what_the_scheduler_wrote) {
  WriteWords(block(), kHeld);
  EXPECT_TRUE(ClosesGate(block()));
  EXPECT_EQ(ReadFlags(block()), kHeld.flags);
  const uint32_t before = ReadQuery(block());
  AskProgress(block());
  EXPECT_NE(ReadQuery(block()), before);
  WriteWords(block(), kOpenWords);
  EXPECT_FALSE(ClosesGate(block()));
}

TEST_F(ControlAccess, a_pause_is_one_word_for_the_device) {
  SetPause(block(), true);
  EXPECT_EQ(block().pause, 1u);
  SetPause(block(), false);
  EXPECT_EQ(block().pause, 0u);
  block().passed = 7;  // the device
  EXPECT_EQ(ReadPassed(block()), 7u);
}

// ---- gate and flags ----

TEST_F(ControlAccess, each_part_of_a_control_has_its_bit) {
  EXPECT_EQ(WordsOf(sched::Control{}), kOpenWords);
  EXPECT_EQ(WordsOf(sched::Control{.run = false, .tracked = true, .gated = true}), kHeld);
  EXPECT_EQ(WordsOf(sched::Control{.tracked = true}), (SchedulerWords{kGateRun, kFlagTracked}));
  EXPECT_EQ(WordsOf(sched::Control{.gated = true, .sliced = true}),
            (SchedulerWords{kGateRun, kFlagGated | kFlagSliced}));
  EXPECT_EQ(WordsOf(sched::Control{.gated = true, .charges_overruns = true}),
            (SchedulerWords{kGateRun, kFlagGated | kFlagChargesOverruns | kFlagStopsSoon}));
  EXPECT_EQ(WordsOf(sched::Control{.charges_overruns = true, .keeps_busy = true}),
            (SchedulerWords{kGateRun, kFlagChargesOverruns}))
      << "as servers of before say it";
}

TEST_F(ControlAccess, flags_are_written_before_the_gate_both_when_it_closes_and_when_it_opens) {
  WriteWords(block(), kOpenWords);
  WriteWords(block(), kHeld, [&] {
    EXPECT_EQ(block().flags.load(), kHeld.flags);
    EXPECT_EQ(block().gate.load(), kGateRun);
  });
  EXPECT_TRUE(HasWords(block(), kHeld));
  WriteWords(block(), kOpenWords, [&] {
    EXPECT_EQ(block().flags.load(), 0u);
    EXPECT_EQ(block().gate.load(), kGateHold);
  });
  EXPECT_TRUE(HasWords(block(), kOpenWords));
}

TEST_F(ControlAccess, words_of_another_writer_are_corrected) {
  for (const SchedulerWords& ours : {kOpenWords, kHeld}) {
    WriteWords(block(), ours);
    EXPECT_FALSE(RestoreWords(block(), ours));
    block().gate.store(ours.held() ? kGateRun : kGateHold);
    EXPECT_TRUE(RestoreWords(block(), ours));
    EXPECT_TRUE(HasWords(block(), ours));
    block().flags.store(ours.flags ^ kFlagSliced);
    EXPECT_TRUE(RestoreWords(block(), ours));
    EXPECT_TRUE(HasWords(block(), ours));
  }
}

TEST_F(ControlAccess, what_is_forced_open_stays_so_whatever_the_scheduler_writes) {
  const auto device_sees = [&] { return block().gate.load() | uint32_t{block().open.load()} << 16; };
  ForceOpen(block(), true);
  WriteWords(block(), kHeld);
  EXPECT_NE(device_sees() & kDeviceGateMask, 0u);
  ForceOpen(block(), false);
  EXPECT_EQ(device_sees() & kDeviceGateMask, 0u);
}

TEST_F(ControlAccess, something_is_taken_from_queues_with_work_only) {
  WriteWords(block(), kHeld);
  EXPECT_FALSE(AnythingTaken(block()));
  block().submitted.store(1);
  EXPECT_TRUE(AnythingTaken(block()));
  WriteWords(block(), {kGateRun, kFlagTracked});
  EXPECT_TRUE(AnythingTaken(block())) << "it may be held at any time";
  WriteWords(block(), {kGateHold, 0});
  EXPECT_TRUE(AnythingTaken(block())) << "a gate that was closed late";
  WriteWords(block(), kOpenWords);
  EXPECT_FALSE(AnythingTaken(block()));
  WriteWords(block(), kHeld);
  block().retired.store(1);
  EXPECT_FALSE(AnythingTaken(block()));
}

// ---- progress ----

TEST_F(ControlAccess, progress_never_shows_more_retired_than_submitted) {
  std::atomic<bool> reading{false};
  std::atomic<bool> done{false};
  std::thread client([&] {
    while (!reading.load()) std::this_thread::yield();
    for (uint64_t i = 1; i <= 300'000; ++i) {
      block().submitted.store(i, std::memory_order_release);
      block().retired.store(i, std::memory_order_release);
    }
    done.store(true);
  });
  while (!done.load()) {
    const Progress progress = ReadProgress(block());
    reading.store(true);
    ASSERT_LE(progress.retired, progress.submitted);
  }
  client.join();
}

TEST_F(ControlAccess, progress_shows_each_move_that_no_report_tells) {
  block().submitted.store(900);
  block().retired.store(100);
  EXPECT_EQ(ReadProgress(block()).moved, 0u);
  CountMove(block());
  CountMove(block());
  const Progress progress = ReadProgress(block());
  EXPECT_EQ(progress.moved, 2u);
  EXPECT_TRUE(progress.submitted == 900 && progress.retired == 100);
}

TEST_F(ControlAccess, progress_shows_each_time_that_the_device_has_nothing_more_of_a_held_queue) {
  EXPECT_EQ(ReadProgress(block()).drained, 0u);
  CountDrain(block());
  EXPECT_EQ(ReadProgress(block()).drained, 1u);
}

TEST_F(ControlAccess, progress_shows_each_time_that_a_question_found_the_device_idle) {
  EXPECT_EQ(ReadProgress(block()).found_idle, 0u);
  CountFoundIdle(block());
  EXPECT_EQ(ReadProgress(block()).found_idle, 1u);
}

TEST_F(ControlAccess, each_question_is_a_new_one) {
  const uint32_t before = block().query.load();
  AskProgress(block());
  AskProgress(block());
  EXPECT_EQ(block().query.load(), before + 2);
}

// ---- waits ----

TEST_F(ControlAccess, waits_are_read_as_they_were_written) {
  WriteWait(segment().depends[7][0], {3, 1, 40});
  WriteWait(segment().depends[7][2], {9, 2, 50});
  const std::vector<Wait> waits = Waits(7);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_TRUE(waits[0].queue == 3 && waits[0].generation == 1 && waits[0].until == 40);
  EXPECT_TRUE(waits[1].queue == 9 && waits[1].generation == 2 && waits[1].until == 50);
  EXPECT_TRUE(Waits(6).empty());
}

TEST_F(ControlAccess, a_wait_for_what_is_no_control_block_is_none) {
  WriteWait(segment().depends[7][0], {kMaxQueues, 1, 40});
  WriteWait(segment().depends[7][1], {~uint32_t{0}, 1, 40});
  EXPECT_TRUE(Waits(7).empty());
}

TEST_F(ControlAccess, a_wait_means_the_queue_that_had_the_block_when_it_was_written) {
  constexpr uint64_t kHandle = uint64_t{5} << 24 | 4;
  constexpr uint64_t kNext = uint64_t{6} << 24 | 4;
  const Wait wait{3, HandleGeneration(kHandle), 40};
  EXPECT_TRUE(MeansQueue(wait, kHandle));
  EXPECT_FALSE(MeansQueue(wait, kNext));
  EXPECT_TRUE(MeansQueue(wait, 0)) << "a client that tells no handles";
  EXPECT_TRUE(MeansQueue({3, 0, 40}, kNext)) << "a client that tells no generations";
}

// ---- bursts ----

TEST_F(ControlAccess, bursts_are_counted_with_the_sum_of_their_lengths) {
  using std::chrono::microseconds;
  const TimePoint begin{std::chrono::hours(1)};
  BeginBurst(block(), begin);
  EXPECT_EQ(ReadBursts(block()).ended, 0u);
  EXPECT_EQ(ReadBursts(block()).began, begin);
  EndBurst(block(), begin + microseconds(30));
  BeginBurst(block(), begin + microseconds(50));
  EndBurst(block(), begin + microseconds(55));
  const Bursts bursts = ReadBursts(block());
  EXPECT_EQ(bursts.ended, 2u);
  EXPECT_EQ(bursts.busy, microseconds(35));
  EXPECT_EQ(bursts.began, begin + microseconds(50));
}

TEST_F(ControlAccess, a_burst_that_goes_on_does_not_begin_again) {
  const TimePoint begin = TimePoint(std::chrono::hours(1));
  EXPECT_FALSE(ReadBursts(block()).goes_on);
  BeginBurst(block(), begin);
  BeginBurst(block(), begin + std::chrono::microseconds(20));
  EXPECT_TRUE(ReadBursts(block()).goes_on);
  EXPECT_EQ(ReadBursts(block()).began, begin);
  EndBurst(block(), begin + std::chrono::microseconds(30));
  EXPECT_FALSE(ReadBursts(block()).goes_on);
  EXPECT_EQ(ReadBursts(block()).busy, std::chrono::microseconds(30));
}

TEST_F(ControlAccess, a_burst_that_is_dropped_is_not_counted) {
  const TimePoint begin = TimePoint(std::chrono::hours(1));
  DropBurst(block());
  BeginBurst(block(), begin);
  DropBurst(block());
  EXPECT_FALSE(ReadBursts(block()).goes_on);
  BeginBurst(block(), begin + std::chrono::microseconds(20));
  EndBurst(block(), begin + std::chrono::microseconds(30));
  EXPECT_EQ(ReadBursts(block()).ended, 1u);
  EXPECT_EQ(ReadBursts(block()).busy, std::chrono::microseconds(10));
}

TEST_F(ControlAccess, a_burst_whose_beginning_was_not_counted_has_no_length) {
  const TimePoint now{std::chrono::hours(1)};
  EndBurst(block(), now);
  EXPECT_EQ(ReadBursts(block()).ended, 1u);
  EXPECT_EQ(ReadBursts(block()).busy, Duration::zero());
  BeginBurst(block(), now);
  EndBurst(block(), now + std::chrono::microseconds(2));
  EndBurst(block(), now + std::chrono::hours(2));
  EXPECT_EQ(ReadBursts(block()).ended, 3u);
  EXPECT_EQ(ReadBursts(block()).busy, std::chrono::microseconds(2));
}

TEST_F(ControlAccess, what_a_client_writes_of_its_bursts_is_never_a_negative_time) {
  block().busy_ns.store(~uint64_t{0});
  block().burst_at.store(~uint64_t{0});
  EXPECT_GE(ReadBursts(block()).busy, Duration::zero());
  EXPECT_GE(ReadBursts(block()).began, TimePoint());
}

TEST_F(ControlAccess, counting_bursts_takes_nothing_from_a_queue) {
  WriteWords(block(), {.gate = kGateRun, .flags = kFlagCounted});
  block().submitted.store(1);
  EXPECT_FALSE(AnythingTaken(block()));
}

// ---- a new queue ----

TEST_F(ControlAccess, a_new_queue_has_nothing_of_the_one_before) {
  WriteWords(block(), kHeld);
  ForceOpen(block(), true);
  AskProgress(block());
  block().submitted.store(5);
  block().retired.store(4);
  block().passed.store(3);
  block().pause.store(1);
  CountMove(block());
  CountDrain(block());
  BeginBurst(block(), TimePoint(std::chrono::hours(1)));
  EndBurst(block(), TimePoint(std::chrono::hours(2)));
  WriteWait(segment().depends[0][3], {1, 1, 1});
  ResetBlock(segment(), 0);
  EXPECT_TRUE(HasWords(block(), kOpenWords));
  EXPECT_EQ(block().open.load(), 0u);
  EXPECT_EQ(block().query.load(), 0u);
  EXPECT_EQ(block().submitted.load(), 0u);
  EXPECT_EQ(block().retired.load(), 0u);
  EXPECT_EQ(block().passed.load(), 0u);
  EXPECT_EQ(block().pause.load(), 0u);
  EXPECT_EQ(block().moved.load(), 0u);
  EXPECT_EQ(block().drained.load(), 0u);
  EXPECT_EQ(block().found_idle.load(), 0u);
  EXPECT_EQ(block().bursts.load(), 0u);
  EXPECT_EQ(block().busy_ns.load(), 0u);
  EXPECT_EQ(block().burst_at.load(), 0u);
  EXPECT_TRUE(Waits(0).empty());
}

}  // namespace
}  // namespace xsched::ipc
