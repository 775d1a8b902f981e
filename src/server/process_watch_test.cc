#include "server/process_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/limits.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

using namespace std::chrono_literals;

// ---- one process: Liveness ----

constexpr Liveness::Signs kNothingRead{false, false, false};
constexpr Liveness::Signs kHasRead{false, true, false};
constexpr Liveness::Signs kHasProgressed{false, false, true};
constexpr Liveness::Signs kStopped{true, false, false};
constexpr TimePoint kStart{1h};

TEST(ProcessLiveness, a_process_is_presumed_alive_for_a_while_after_it_was_heard_from) {
  Liveness process(kStart);
  EXPECT_TRUE(process.IsPresumedAlive(kStart + 19ms));
  EXPECT_FALSE(process.IsPresumedAlive(kStart + 20ms));
  process.HeardFrom(kStart + 20ms);
  EXPECT_TRUE(process.IsPresumedAlive(kStart + 39ms));
}

TEST(ProcessLiveness, a_process_that_nobody_has_asked_is_asked_and_not_silent) {
  Liveness process(kStart);
  const Liveness::Verdict verdict = process.Check(kNothingRead, kStart + 10s);
  EXPECT_TRUE(verdict.must_ask);
  EXPECT_FALSE(verdict.changed);
  EXPECT_TRUE(process.running());
}

TEST(ProcessLiveness, a_process_that_leaves_unread_what_it_was_asked_is_silent_after_60_ms) {
  Liveness process(kStart);
  process.Asked(kStart);
  const Liveness::Verdict early = process.Check(kNothingRead, kStart + 59ms);
  EXPECT_TRUE(process.running());
  EXPECT_FALSE(early.must_ask);
  EXPECT_EQ(early.check_at, kStart + 60ms);
  const Liveness::Verdict late = process.Check(kNothingRead, kStart + 60ms);
  EXPECT_TRUE(late.changed);
  EXPECT_TRUE(process.silent());
  EXPECT_FALSE(process.Check(kNothingRead, kStart + 70ms).changed) << "it is silent still";
}

TEST(ProcessLiveness, reading_or_making_progress_shows_that_it_lives) {
  for (const Liveness::Signs& signs : {kHasRead, kHasProgressed}) {
    Liveness process(kStart);
    process.Asked(kStart);
    process.Check(kNothingRead, kStart + 60ms);
    ASSERT_TRUE(process.silent());
    const Liveness::Verdict verdict = process.Check(signs, kStart + 80ms);
    EXPECT_TRUE(verdict.changed && process.running());
    EXPECT_TRUE(verdict.must_ask) << "the next silence is found, too";
  }
}

TEST(ProcessLiveness, a_process_that_is_heard_from_is_running_again_unless_it_is_stopped) {
  Liveness process(kStart);
  EXPECT_FALSE(process.HeardFrom(kStart)) << "it was running";
  process.Asked(kStart);
  process.Check(kNothingRead, kStart + 60ms);
  EXPECT_TRUE(process.HeardFrom(kStart + 61ms));
  EXPECT_TRUE(process.running());
  process.Check(kStopped, kStart + 81ms);
  EXPECT_FALSE(process.HeardFrom(kStart + 82ms)) << "what it wrote before it was stopped";
  EXPECT_TRUE(process.stopped());
}

TEST(ProcessLiveness, a_stopped_process_is_asked_nothing_and_runs_when_it_is_continued) {
  Liveness process(kStart);
  const Liveness::Verdict verdict = process.Check(kStopped, kStart);
  EXPECT_TRUE(verdict.changed && process.stopped() && !process.running());
  EXPECT_FALSE(verdict.must_ask);
  EXPECT_TRUE(process.Check(kHasRead, kStart + 1s).changed);
  EXPECT_TRUE(process.running());
}

// ---- all processes ----

// A process with an urgent queue that has work, and another one whose queue waits for it.
class ProcessWatchTest : public ServerParts {
 protected:
  ProcessWatchTest() : ServerParts(WithoutWatchdog()) {
    stopped_pid_ = -1;
    EXPECT_TRUE(CreateQueue(urgent_, 0, 10) && CreateQueue(other_, 0, 0));
    Submit(urgent_, 0);
    Submit(other_, 0);
    Round();
    EXPECT_TRUE(other_.IsHeld(0));
  }
  // With its watchdog, the scheduler would also let others run beside a queue without progress.
  static sched::SchedulerConfig WithoutWatchdog() {
    sched::SchedulerConfig config;
    config.stall_after = 1h;
    return config;
  }
  void Round() {
    process_watch_.Check(now_);
    agents_.Decide(now_);
    next_check_ = process_watch_.NextCheck(now_);
    other_.ReadAll<ipc::Wake>();
  }
  // Runs rounds until `end`, when the watch and the scheduler ask for them. Calls `each` after each round.
  template <typename Each>
  void RunUntil(TimePoint end, Each&& each) {
    for (; now_ < end; now_ += 1ms) {
      Round();
      each();
    }
  }

  Client urgent_ = ConnectAgent({100, 1000, {}});
  Client other_ = ConnectAgent({200, 1000, {}});
  TimePoint next_check_ = kNever;
};

TEST_F(ProcessWatchTest, a_process_that_does_not_answer_holds_nobody_100_ms_later) {
  RunUntil(now_ + 100ms, [] {});
  EXPECT_TRUE(AgentOf(urgent_).liveness.silent());
  EXPECT_FALSE(other_.IsHeld(0));
}

TEST_F(ProcessWatchTest, it_takes_its_place_again_when_it_is_heard_from) {
  RunUntil(now_ + 100ms, [] {});
  ASSERT_FALSE(other_.IsHeld(0));
  urgent_.ReadAll<ipc::Wake>();
  Submit(urgent_, 0);
  Round();
  EXPECT_TRUE(AgentOf(urgent_).liveness.running());
  EXPECT_TRUE(other_.IsHeld(0));
}

TEST_F(ProcessWatchTest, a_process_that_reads_what_it_is_asked_keeps_its_place) {
  RunUntil(now_ + 60ms, [&] {
    urgent_.ReadAll<ipc::Wake>();
    EXPECT_TRUE(AgentOf(urgent_).liveness.running());
    EXPECT_TRUE(other_.IsHeld(0));
  });
}

TEST_F(ProcessWatchTest, a_stopped_process_holds_nobody_40_ms_later_until_it_goes_on) {
  stopped_pid_ = 100;
  RunUntil(now_ + 41ms, [] {});
  EXPECT_TRUE(AgentOf(urgent_).liveness.stopped());
  EXPECT_FALSE(other_.IsHeld(0));
  stopped_pid_ = -1;
  urgent_.ReadAll<ipc::Wake>();
  RunUntil(now_ + 21ms, [&] { urgent_.ReadAll<ipc::Wake>(); });
  EXPECT_TRUE(AgentOf(urgent_).liveness.running());
  EXPECT_TRUE(other_.IsHeld(0));
}

TEST_F(ProcessWatchTest, a_stopped_process_among_many_takes_its_place_again_when_it_goes_on) {
  constexpr pid_t kFirst = 1000;
  std::vector<Client> processes;
  while (processes.size() < 3 * kMaxCheckedPerRound)
    processes.push_back(ConnectAgent({kFirst + static_cast<pid_t>(processes.size()), 1000, {}}));
  const auto retire = [&](const Client& client) {
    client.block(0).retired.store(client.block(0).submitted.load());
    Ring(client, 0);
    Round();
  };
  retire(urgent_);
  // A check takes several rounds, and each process is in another place of it.
  for (size_t i = 0; i < processes.size(); ++i) {
    const Client& process = processes[i];
    ASSERT_TRUE(CreateQueue(process, 0, 10));
    Submit(process, 0);
    Round();
    ASSERT_TRUE(other_.IsHeld(0));
    stopped_pid_ = kFirst + static_cast<pid_t>(i);
    RunUntil(now_ + 100ms, [] {});
    ASSERT_TRUE(AgentOf(process).liveness.stopped());
    ASSERT_FALSE(other_.IsHeld(0));
    stopped_pid_ = -1;
    process.ReadAll<ipc::Wake>();
    Submit(process, 0);
    RunUntil(now_ + 41ms, [&] { process.ReadAll<ipc::Wake>(); });
    EXPECT_TRUE(AgentOf(process).liveness.running()) << i;
    EXPECT_TRUE(other_.IsHeld(0)) << i;
    retire(process);
  }
}

TEST_F(ProcessWatchTest, of_a_process_that_is_checked_idle_queues_are_not_looked_at_again) {
  ASSERT_TRUE(CreateQueue(urgent_, 1, 10));
  RunUntil(now_ + 25ms, [&] { urgent_.ReadAll<ipc::Wake>(); });
  recordings_.Look(now_);
  RunUntil(now_ + 25ms, [] {});
  EXPECT_TRUE(AgentOf(urgent_).queues.at(0).touched) << "it was checked, and has work";
  EXPECT_FALSE(AgentOf(urgent_).queues.at(1).touched);
}

TEST_F(ProcessWatchTest, work_of_an_idle_queue_that_did_not_ring_is_found) {
  ASSERT_TRUE(CreateQueue(urgent_, 1, 10));
  RunUntil(now_ + 25ms, [&] { urgent_.ReadAll<ipc::Wake>(); });
  urgent_.block(1).submitted.fetch_add(1);
  RunUntil(now_ + 25ms, [] {});
  EXPECT_EQ(scheduler_.Stats(AgentOf(urgent_).queues.at(1).id, now_)->state, sched::QueueState::kReady);
}

TEST_F(ProcessWatchTest, nobody_is_checked_while_nobody_waits) {
  EXPECT_EQ(next_check_, now_ + ProcessWatch::kCheckEvery);
  other_.block(0).retired.store(other_.block(0).submitted.load());
  Ring(other_, 0);
  urgent_.block(0).retired.store(urgent_.block(0).submitted.load());
  Ring(urgent_, 0);
  now_ += 1s;
  Round();
  Round();
  EXPECT_EQ(next_check_, kNever);
}

}  // namespace
}  // namespace xsched::server::testing
