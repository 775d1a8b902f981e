// Turns in virtual time: several processes of jobs on several devices.
#include "sched/core/turns.h"

#include <algorithm>
#include <ostream>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "sched/testing/timeline.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class TurnsTest : public Timeline {
 protected:
  // Adds an idle urgent process on each device, so that all others take turns.
  void AddUrgent(std::initializer_list<uint64_t> devices) {
    for (uint64_t device : devices) Add(900 + device, 10, device);
  }
  void AddBusy(uint64_t id, uint64_t device, Priority priority = 0, uint64_t job = 0) {
    if (job != 0) scheduler_.SetJob(ProcessId{id}, JobId{job});
    Add(id, priority, device);
    Busy(id);
  }
  // Their ranks are 11 and 12, and 21 and 22, on the devices 7 and 8.
  void AddTwoJobs() {
    AddBusy(11, 7, 0, 1);
    AddBusy(12, 8, 0, 1);
    AddBusy(21, 7, 0, 2);
    AddBusy(22, 8, 0, 2);
  }
  bool IsOn(uint64_t id) { return Runs(id) && !IsOff(id); }
  // These programs have commands of a millisecond.
  void Work(std::initializer_list<uint64_t> ids) {
    Pass(milliseconds(1));
    for (uint64_t id : ids) {
      if (IsOn(id)) RetireOne(id);
    }
  }
  // True if all other processes with work are off their devices.
  bool IsAlone(uint64_t id) {
    return IsOn(id) && std::none_of(device_of_.begin(), device_of_.end(), [&](auto other) {
             return other.first != id && other.second == device_of_[id] && other.first < 900 &&
                    IsOn(other.first);
           });
  }
  // A step of a job needs 2 ms in which each of its ranks is alone on its device. Returns each job's share.
  std::vector<double> Share(const std::vector<std::vector<uint64_t>>& jobs, milliseconds time) {
    std::vector<int> worked(jobs.size());
    for (milliseconds passed{}; passed < time; passed += milliseconds(1)) {
      BeforeEachMillisecond(passed);
      for (size_t i = 0; i < jobs.size(); ++i) {
        if (!std::all_of(jobs[i].begin(), jobs[i].end(), [&](uint64_t rank) { return IsAlone(rank); }))
          continue;
        if (std::any_of(jobs[i].begin(), jobs[i].end(),
                        [&](uint64_t rank) { return taken_.contains(device_of_[rank]); }))
          continue;
        if (++worked[i] % 2 != 0) continue;
        for (uint64_t rank : jobs[i]) RetireOne(rank);
      }
      Pass(milliseconds(1));
    }
    std::vector<double> shares;
    for (int ms : worked) shares.push_back(static_cast<double>(ms) / static_cast<double>(time.count()));
    return shares;
  }
  // The urgent processes work for 5 ms at a time.
  void BeforeEachMillisecond(milliseconds passed) {
    for (auto [device, period] : urgent_every_) {
      const auto phase = passed % period;
      if (phase == milliseconds(0)) {
        Progress(900 + device, ++urgent_[device], urgent_[device] - 1);
        taken_.insert(device);
      } else if (phase == milliseconds(5)) {
        Progress(900 + device, urgent_[device], urgent_[device]);
        taken_.erase(device);
      }
    }
  }

  std::map<uint64_t, milliseconds> urgent_every_;
  std::map<uint64_t, uint64_t> urgent_;
  std::set<uint64_t> taken_;
};

// Two jobs of two ranks, on devices 7 and 8.
struct Ranks {
  const char* name;
  milliseconds apart;        // how much later the second job's second rank comes than its first
  milliseconds urgent_on_7;  // 0: never
  milliseconds urgent_on_8;
  bool third_class;
  double share;

  friend void PrintTo(const Ranks& ranks, std::ostream* out) { *out << ranks.name; }
};

class TwoJobs : public TurnsTest, public testing::WithParamInterface<Ranks> {};

TEST_P(TwoJobs, of_two_ranks_have_half_of_the_time_each) {
  const Ranks& ranks = GetParam();
  AddUrgent({7, 8});
  if (ranks.third_class) {
    AddBusy(31, 7, -5);
    AddBusy(32, 8, -5);
  }
  AddBusy(11, 7);
  AddBusy(12, 8);
  Pass(milliseconds(300));
  AddBusy(21, 7);
  Pass(ranks.apart);
  AddBusy(22, 8);
  if (ranks.urgent_on_7 != milliseconds(0)) urgent_every_[7] = ranks.urgent_on_7;
  if (ranks.urgent_on_8 != milliseconds(0)) urgent_every_[8] = ranks.urgent_on_8;
  const auto shares = Share({{11, 12}, {21, 22}}, milliseconds(10000));
  EXPECT_GE(shares[0], ranks.share);
  EXPECT_GE(shares[1], ranks.share);
}

constexpr milliseconds kNone(0);
INSTANTIATE_TEST_SUITE_P(
    Cases, TwoJobs,
    testing::Values(Ranks{"together", milliseconds(3), kNone, kNone, false, 0.45},
                    Ranks{"apart", milliseconds(100), kNone, kNone, false, 0.45},
                    Ranks{"urgent_on_one", milliseconds(3), milliseconds(50), kNone, false, 0.43},
                    Ranks{"urgent_on_both", milliseconds(3), milliseconds(50), milliseconds(140), false,
                          0.40},
                    Ranks{"third_class", milliseconds(3), kNone, kNone, true, 0.45},
                    Ranks{"third_class_apart", milliseconds(100), milliseconds(50), kNone, true, 0.43}),
    [](const auto& ranks) { return std::string(ranks.param.name); });

// Natively, the rank without a turn would spin on the device where nobody is urgent, and have half of it.
TEST_F(TurnsTest, jobs_that_meet_on_two_devices_take_turns_on_both_also_if_one_alone_has_an_urgent_program) {
  AddTwoJobs();
  Pass(milliseconds(300));
  for (uint64_t id : {11, 12, 21, 22}) EXPECT_TRUE(IsOn(id)) << "nobody is urgent yet";
  AddUrgent({7});
  auto shares = Share({{11, 12}, {21, 22}}, milliseconds(10000));
  EXPECT_GE(shares[0], 0.45);
  EXPECT_GE(shares[1], 0.45);
  urgent_every_[7] = milliseconds(50);
  shares = Share({{11, 12}, {21, 22}}, milliseconds(10000));
  EXPECT_GE(shares[0], 0.40);
  EXPECT_GE(shares[1], 0.40);
  urgent_every_.clear();
  scheduler_.RemoveQueue(QueueId{907}, now_);
  scheduler_.RemoveProcess(ProcessId{907});
  Pass(milliseconds(2000));
  for (uint64_t id : {11, 12, 21, 22}) EXPECT_TRUE(IsOn(id)) << id << ": the urgent program is gone";
}

// Their commands are so short that the two could share device 8, and a trial of that goes on there.
TEST_F(TurnsTest, a_device_that_begins_to_follow_another_one_asks_for_no_time_that_has_passed) {
  AddUrgent({7, 8});
  AddTwoJobs();
  for (int ms = 0; ms < 8000 && !HasFatalFailure(); ++ms) {
    if (ms == 1000) scheduler_.RemoveQueue(QueueId{908}, now_);
    Work({11, 21});
    for (uint64_t id : {12, 22}) {
      if (IsOn(id)) Progress(id, kEndless, retired_[id] + 100);
    }
  }
}

TEST_F(TurnsTest, programs_of_two_devices_that_have_nothing_to_do_with_each_other_take_turns_on_one_only) {
  AddUrgent({7});
  AddBusy(11, 7, 0, 1);
  AddBusy(21, 7, 0, 2);
  AddBusy(32, 8, 0, 3);
  AddBusy(42, 8, 0, 4);
  for (int ms = 0; ms < 1000; ++ms) {
    Work({11, 21, 32, 42});
    EXPECT_NE(IsOn(11), IsOn(21));
    EXPECT_TRUE(IsOn(32) && IsOn(42)) << ms;
  }
}

TEST_F(TurnsTest, a_job_alone_on_the_second_device_keeps_it) {
  AddUrgent({7});
  AddBusy(11, 7, 0, 1);
  AddBusy(12, 8, 0, 1);
  AddBusy(21, 7, 0, 2);
  for (int ms = 0; ms < 1000; ++ms) {
    Work({11, 12, 21});
    EXPECT_TRUE(IsOn(12)) << ms;
  }
}

TEST_F(TurnsTest, jobs_are_matched_by_what_is_known_of_them_not_by_the_order_in_which_they_come) {
  AddUrgent({7, 8});
  AddBusy(11, 7, 0, 100);
  AddBusy(21, 7, 0, 200);
  AddBusy(22, 8, 0, 200);
  AddBusy(12, 8, 0, 100);
  const auto shares = Share({{11, 12}, {21, 22}}, milliseconds(5000));
  EXPECT_GE(shares[0], 0.45);
  EXPECT_GE(shares[1], 0.45);
}

TEST_F(TurnsTest, a_lower_class_on_one_device_alone_does_not_shift_the_order_of_the_others) {
  AddUrgent({7, 8});
  AddBusy(31, 7, -5);
  AddBusy(11, 7);
  AddBusy(12, 8);
  AddBusy(21, 7);
  AddBusy(22, 8);
  const auto shares = Share({{11, 12}, {21, 22}}, milliseconds(5000));
  EXPECT_GE(shares[0], 0.45);
  EXPECT_GE(shares[1], 0.45);
}

TEST_F(TurnsTest, jobs_that_meet_on_no_device_do_not_wait_for_each_other) {
  AddUrgent({7, 8});
  AddBusy(11, 7, 0, 1);
  AddBusy(12, 7, 0, 2);
  AddBusy(21, 8, 0, 3);
  AddBusy(22, 8, 0, 4);
  for (double share : Share({{11}, {12}, {21}, {22}}, milliseconds(5000))) EXPECT_GE(share, 0.45);
}

TEST_F(TurnsTest, a_job_on_two_devices_and_one_on_each_have_half_of_the_time_each) {
  AddUrgent({7, 8});
  AddBusy(11, 7, 0, 1);
  AddBusy(12, 8, 0, 1);
  AddBusy(21, 7, 0, 2);
  AddBusy(31, 8, 0, 3);
  for (double share : Share({{11, 12}, {21}, {31}}, milliseconds(5000))) EXPECT_GE(share, 0.45);
}

// Its arrivals end long and short turns alternately.
TEST_F(TurnsTest, equals_share_what_an_urgent_program_at_10_hz_leaves) {
  AddUrgent({7});
  AddBusy(1, 7);
  AddBusy(2, 7);
  urgent_every_[7] = milliseconds(100);
  const std::vector<double> share = Share({{1}, {2}}, milliseconds(4000));
  EXPECT_NEAR(share[0], share[1], 0.05);
  EXPECT_GE(share[0] + share[1], 0.85);
}

TEST_F(TurnsTest, a_process_on_two_devices_has_its_turns_on_both_at_the_same_time) {
  AddUrgent({7, 8});
  // On device 8 both arrive in the other order.
  AddBusy(11, 7);
  AddBusy(21, 7);
  Add(22, 0, 8, 21);
  Add(12, 0, 8, 11);
  Busy(22);
  Busy(12);
  Pass(milliseconds(5));  // after a timeslice, a device that was lent is taken back
  int together = 0;
  for (int i = 0; i < 1000; ++i) {
    Pass(milliseconds(1));
    const auto on = [&](uint64_t process, uint64_t device) {
      return sink_.SliceOf(ProcessId{process}, DeviceId{device}) != kNoSlice;
    };
    ASSERT_EQ(on(11, 7), on(11, 8));
    ASSERT_EQ(on(21, 7), on(21, 8));
    together += on(11, 7);
    RetireOne(on(11, 7) ? 11 : 21);
    RetireOne(on(11, 8) ? 12 : 22);
  }
  EXPECT_NEAR(together, 500, 100);
}

TEST_F(TurnsTest, turns_change_on_all_devices_at_the_same_moment) {
  AddUrgent({7, 8});
  for (uint64_t id : {11, 21}) AddBusy(id, 7);
  for (uint64_t id : {12, 22}) AddBusy(id, 8);
  int changes = 0;
  bool before = IsOn(11);
  for (int i = 0; i < 2000; ++i) {
    Work({11, 12, 21, 22});
    ASSERT_EQ(IsOn(11), IsOn(12));
    ASSERT_EQ(IsOn(21), IsOn(22));
    ASSERT_NE(IsOn(11), IsOn(21));
    changes += before != IsOn(11);
    before = IsOn(11);
  }
  EXPECT_GE(changes, 20);
}

TEST_F(TurnsTest, who_has_its_turn_is_reported_and_is_one_process_that_is_on_the_device) {
  AddUrgent({7});
  for (uint64_t id : {1, 2}) AddBusy(id, 7);
  std::set<uint64_t> had;
  for (int i = 0; i < 500; ++i) {
    Work({1, 2});
    const std::set<ProcessId>& with_turn = sink_.WithTurn(DeviceId{7});
    ASSERT_EQ(with_turn.size(), 1u);
    const auto id = static_cast<uint64_t>(*with_turn.begin());
    ASSERT_TRUE(IsAlone(id));
    had.insert(id);
    for (uint64_t each : {1, 2}) ASSERT_EQ(scheduler_.Stats(QueueId{each}, now_)->has_turn, each == id);
  }
  EXPECT_EQ(had.size(), 2u);
  EXPECT_LT(sink_.turn_changes, 500) << "only changes are reported";
}

TEST_F(TurnsTest, nobody_has_a_turn_any_more_when_the_last_other_process_has_gone) {
  AddUrgent({7});
  for (uint64_t id : {1, 2}) AddBusy(id, 7);
  Pass(milliseconds(5));
  ASSERT_EQ(sink_.WithTurn(DeviceId{7}).size(), 1u);
  scheduler_.RemoveQueue(QueueId{2}, now_);
  scheduler_.RemoveProcess(ProcessId{2});
  Pass(milliseconds(5));
  EXPECT_TRUE(sink_.WithTurn(DeviceId{7}).empty());
}

TEST_F(TurnsTest, a_turn_is_shorter_than_90_ms_however_long_the_timeslice_is) {
  scheduler_.SetTimeslice(std::chrono::seconds(10));
  AddUrgent({7});
  AddBusy(1, 7);
  AddBusy(2, 7);
  for (int turn = 0; turn < 10; ++turn) {
    const TimePoint begin = now_;
    const bool first = IsOn(1);
    while (IsOn(1) == first && now_ < begin + milliseconds(200)) Pass(milliseconds(1));
    EXPECT_LT(now_ - begin, milliseconds(90));
  }
}

// The second one has had less time than the first, and would keep its turn until it has had as much.
TEST_F(TurnsTest, the_latest_end_of_a_turn_holds_also_for_a_party_that_has_had_less_than_the_others) {
  scheduler_.SetTimeslice(milliseconds(1));
  AddUrgent({7});
  AddBusy(1, 7);
  AddBusy(2, 7);
  for (int turn = 0; turn < 10; ++turn) {
    const TimePoint begin = now_;
    const bool first = IsOn(1);
    while (IsOn(1) == first && now_ < begin + milliseconds(200) && !HasFatalFailure()) Work({1, 2});
    EXPECT_LE(now_ - begin, milliseconds(82));
  }
}

TEST_F(TurnsTest, a_device_whose_job_has_a_pause_is_lent_and_taken_back) {
  AddUrgent({7, 8});
  AddTwoJobs();
  while (!IsOn(11)) Work({21, 22});
  while (IsOn(11)) Work({11, 12});
  while (!IsOn(11)) Work({21, 22});  // its turn has just begun
  ASSERT_TRUE(IsOn(12));
  const uint64_t retired = retired_[11];
  Progress(11, retired + 1, retired + 1);
  Pass(milliseconds(1));
  EXPECT_TRUE(IsOn(21)) << "the device is not idle";
  EXPECT_TRUE(IsOn(12)) << "the other rank keeps its turn";
  Progress(11, retired + 1000, retired + 1);
  Pass(milliseconds(6));
  EXPECT_TRUE(IsOn(11)) << "the job has its turn together again";
  EXPECT_TRUE(IsOff(21));
  EXPECT_TRUE(IsOn(12));
}

TEST_F(TurnsTest, programs_that_come_and_go_starve_nobody) {
  AddUrgent({7});
  AddBusy(1, 7);
  AddBusy(2, 7);
  Duration on[3] = {};
  for (uint64_t i = 0; i < 500; ++i) {
    AddBusy(100 + i, 7);
    for (int ms = 0; ms < 10; ++ms) {
      Pass(milliseconds(1));
      for (uint64_t id : {1, 2}) on[id] += IsOn(id) ? milliseconds(1) : milliseconds(0);
    }
    if (i < 3) continue;
    scheduler_.RemoveQueue(QueueId{100 + i - 3}, now_);
    device_of_.erase(100 + i - 3);
    Decide();
  }
  EXPECT_GE(on[1], milliseconds(500));
  EXPECT_GE(on[2], milliseconds(500));
}

// Random programs of three classes on three devices, at level 3, with waits, windows and jobs.
class RandomTurns : public TurnsTest, public testing::WithParamInterface<int> {};

TEST_P(RandomTurns, never_leave_a_device_with_work_to_nobody_nor_to_two_with_the_shortest_slice) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::map<uint64_t, bool> absent;
  std::map<uint64_t, uint64_t> submitted;
  std::map<uint64_t, uint64_t> process_of;
  uint64_t next = 1;
  for (int step = 0; step < 3000; ++step) {
    const uint64_t id =
        device_of_.empty() ? 0
                           : std::next(device_of_.begin(), below(static_cast<int>(device_of_.size())))->first;
    switch (device_of_.size() < 6 ? 0 : below(12)) {
      case 0: {
        if (device_of_.size() > 16) break;
        const uint64_t process = next / 2 + 1000;
        if (below(2) == 0) scheduler_.SetJob(ProcessId{process}, JobId{static_cast<uint64_t>(below(3))});
        process_of[next] = process;
        Add(next, below(3), 7 + static_cast<uint64_t>(below(3)), process);
        ++next;
        break;
      }
      case 1:
        scheduler_.RemoveQueue(QueueId{id}, now_);
        for (auto* map : {&submitted, &process_of, &device_of_, &retired_}) map->erase(id);
        absent.erase(id);
        Decide();
        break;
      case 2:
        absent[id] = below(3) == 0;
        SetAbsent(id, absent[id]);
        break;
      case 3: {
        Dependency dependency{QueueId{static_cast<uint64_t>(1 + below(static_cast<int>(next)))}, 5};
        scheduler_.SetDependencies(QueueId{id}, {&dependency, static_cast<size_t>(below(2))});
        break;
      }
      case 4:
        scheduler_.SetHints(QueueId{id}, Hints{.priority = below(3)});
        Decide();
        break;
      case 5:
      case 6:
        Progress(id, submitted[id], submitted[id]);
        break;
      case 7:
        if (retired_[id] < submitted[id]) Progress(id, submitted[id], retired_[id] + 1);
        break;
      default:
        submitted[id] += 3;
        Progress(id, submitted[id], retired_[id]);
    }
    Pass(below(4) == 0 ? Duration(milliseconds(below(60))) : Duration(microseconds(below(900))));
    std::map<uint64_t, int> ready;
    std::map<uint64_t, int> working;
    std::map<uint64_t, std::set<uint64_t>> shortest;
    for (auto [queue, device] : device_of_) {
      if (submitted[queue] <= retired_[queue] || absent[queue]) continue;
      const Duration slice = sink_.SliceOf(ProcessId{process_of[queue]}, DeviceId{device});
      ++ready[device];
      working[device] += Runs(queue) && slice != kNoSlice;
      if (slice == kShortestSlice) shortest[device].insert(process_of[queue]);
    }
    for (auto [device, count] : ready) {
      // A queue that has just finished may linger.
      if (working[device] == 0) {
        EXPECT_LE(ask_at_, now_ + SchedulerConfig{}.process_grace) << step;
      }
      ASSERT_LE(shortest[device].size(), 1u) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTurns, testing::Range(1, 9));

}  // namespace
}  // namespace xsched::sched
