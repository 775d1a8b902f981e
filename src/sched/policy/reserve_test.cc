// Reservation: guarantees, what is left over, limits, and queues that wait for a limited queue.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sched/core/reservation.h"
#include "sched/sim/simulator.h"
#include "sched/testing/busy_device.h"
#include "sched/testing/policy_device.h"
#include "sched/testing/timeline.h"

namespace xsched::sched::reserve {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Policy& Reserve() { return *FindPolicy(kPolicyReservation); }

// Times in milliseconds.
Hints Reserved(int guarantee, int period, int limit = 0, int burst = 0, Weight weight = WEIGHT_DEFAULT) {
  return {.weight = weight,
          .guarantee_us = 1000 * guarantee,
          .period_us = 1000 * period,
          .limit_us = 1000 * limit,
          .burst_us = 1000 * burst};
}

QueueView Claimant(uint64_t id, const Hints& hints) { return View(id, hints, ProcessId{id}); }

TEST(Reserve, each_period_brings_what_is_guaranteed_whatever_the_others_want) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(2, 10)), Claimant(2, Reserved(6, 20)),
                                Claimant(3, {.weight = WEIGHT_MAX})});
  for (int i = 0; i < 100; ++i) {
    const Duration before[] = {device[0].service, device[1].service};
    device.Pass(milliseconds(10));
    EXPECT_GE(device[0].service - before[0], milliseconds(2)) << i;
    device.Pass(milliseconds(10));
    EXPECT_GE(device[1].service - before[1], milliseconds(6)) << i;
  }
}

TEST(Reserve, guarantees_of_all_of_the_device_are_kept) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const int periods[] = {10, 20, 40};
    BusyDevice device(Reserve(), {Claimant(1, {}), Claimant(2, {}), Claimant(3, {}), Claimant(4, {})});
    int percent = 100;
    for (size_t i = 0; i < 3; ++i) {
      const int part = 10 * (1 + static_cast<int>(random() % 3));
      percent -= part;
      const int period = periods[random() % 3];
      device[i].hints = Reserved(period * part / 100, period);
    }
    device[3].hints = Reserved(40 * percent / 100, 40);
    for (int i = 0; i < 50; ++i) {
      std::vector<Duration> before;
      for (const QueueView& claimant : device.ready()) before.push_back(claimant.service);
      device.Pass(milliseconds(40));
      for (size_t j = 0; j < 4; ++j) {
        const Hints& hints = device[j].hints;
        const Duration due = microseconds(hints.guarantee_us) * (40'000 / hints.period_us);
        // A turn that would be shorter than the shortest one is extended.
        EXPECT_GE(device[j].service - before[j] + microseconds(4 * TIMESLICE_MIN), due)
            << "seed " << seed << ", period " << i << ", claimant " << j;
      }
    }
  }
}

TEST(Reserve, what_is_left_over_goes_round_by_weight) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(4, 10)), Claimant(2, {.weight = 300}), Claimant(3, {})});
  device.Pass(seconds(5));
  EXPECT_NEAR(InSeconds(device[0].service), 2 + 3 * 0.2, 0.03);
  EXPECT_NEAR(InSeconds(device[1].service), 3 * 0.6, 0.03);
  EXPECT_NEAR(InSeconds(device[2].service), 3 * 0.2, 0.03);
}

TEST(Reserve, what_one_does_not_use_the_others_get) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(9, 10)), Claimant(2, {})});
  device.Pass(milliseconds(100));
  device.Leave(0);
  const Duration before = device[0].service;
  device.Pass(milliseconds(100));
  EXPECT_EQ(device[0].service - before, milliseconds(100));
}

TEST(Reserve, who_was_idle_has_its_guarantee_at_once_and_has_saved_up_nothing) {
  BusyDevice device(Reserve(), {Claimant(1, {}), Claimant(2, Reserved(5, 10))});
  device.Pass(milliseconds(33));
  const QueueView idle = device.Leave(1);
  device.Pass(seconds(1));
  device.Return(idle);
  const Duration before = device[1].service;
  device.Pass(milliseconds(5));
  EXPECT_EQ(device[1].service - before, milliseconds(5));
  device.Pass(milliseconds(95));
  EXPECT_LE(device[1].service - before, milliseconds(50 + 25 + 5)) << "its guarantee, and half of the rest";
}

TEST(Reserve, a_limit_holds_even_if_the_device_is_idle) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(0, 10, 3))});
  for (int i = 0; i < 100; ++i) {
    const Duration before = device[0].service;
    device.Pass(milliseconds(10));
    EXPECT_EQ(device[0].service - before, milliseconds(3)) << i;
  }
}

TEST(Reserve, what_runs_on_is_taken_off_the_next_periods) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(0, 10, 3)), Claimant(2, {})});
  device.Pass(milliseconds(10));
  device[0].service += milliseconds(7);  // one long command
  const Duration before = device[0].service;
  device.Decide();
  EXPECT_FALSE(device[0].run);
  device.Pass(milliseconds(20));
  EXPECT_EQ(device[0].service, before);
  device.Pass(milliseconds(10));
  EXPECT_EQ(device[0].service, before + milliseconds(2));
}

TEST(Reserve, a_limit_keeps_nobody_from_running_for_more_than_a_second_and_a_period) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(0, 10, 3))});
  device.Pass(milliseconds(10));
  device[0].service += seconds(2);  // a very long command
  device.Decide();
  EXPECT_GE(device[0].limited_until, device.now + seconds(1) - milliseconds(10));
  EXPECT_LE(device[0].limited_until, device.now + seconds(1) + milliseconds(10));
}

TEST(Reserve, what_runs_on_after_a_guarantee_is_taken_off_the_next_guarantees) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(4, 10)), Claimant(2, Reserved(6, 10))});
  device.Pass(milliseconds(4));
  device.Decide();
  ASSERT_TRUE(device[1].run);
  // A long command of the first one. The second one runs, and the device does nothing for it yet.
  device.now += milliseconds(5);
  device[0].service += milliseconds(5);
  device.Pass(milliseconds(91));
  EXPECT_NEAR(InSeconds(device[0].service), 0.04, 0.0015);
  EXPECT_NEAR(InSeconds(device[1].service), 0.06, 0.0015);
}

TEST(Reserve, a_command_that_hangs_costs_its_queue_no_more_of_the_guarantee_than_that_is_in_a_second) {
  Hints heavy;
  heavy.weight = WEIGHT_MAX;
  BusyDevice device(Reserve(), {Claimant(1, Reserved(1, 10)), Claimant(2, heavy)});
  device.Pass(milliseconds(1));
  device.Decide();
  device.now += seconds(20);
  device[0].service += seconds(20);
  device.Pass(seconds(2));
  const Duration before = device[0].service;
  device.Pass(seconds(1));
  EXPECT_NEAR(InSeconds(device[0].service - before), 0.1, 0.015);
}

TEST(Reserve, what_is_kept_of_a_guarantee_is_bounded) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(4, 10)), Claimant(2, {})});
  device.Pass(milliseconds(10));
  device.Decide();
  device.now += seconds(2);  // the device does nothing for them
  const Duration before = device[1].service;
  device.Pass(milliseconds(100));
  EXPECT_GE(device[1].service - before, milliseconds(5)) << "it starves while the guarantee is made up for";
}

TEST(Reserve, a_limit_that_is_shorter_than_the_way_to_the_device_is_kept_over_several_periods) {
  PolicyDevice device{Claimant(1, Reserved(0, 20, 1)), Claimant(2, Reserved(10, 20))};
  const auto decide = [&](Duration at) {
    const TimePoint now = PolicyDevice::kNow + at;
    const TimePoint next = device.Decide(Reserve(), now, kLeastTurnOnDevice);
    for (QueueView& claimant : device.ready()) {
      if (claimant.run && !claimant.running) claimant.running_since = now;
      claimant.running = claimant.run;
    }
    return next - PolicyDevice::kNow;
  };
  decide({});
  device[1].service = milliseconds(10);
  decide(milliseconds(10));
  ASSERT_TRUE(device[0].run);
  device[0].service = milliseconds(1);
  EXPECT_EQ(decide(milliseconds(11)), milliseconds(12));
  EXPECT_TRUE(device[0].run) << "it has used up its limit, and keeps its turn";
  device[0].service = milliseconds(2);
  decide(milliseconds(12));
  EXPECT_FALSE(device[0].run);
  EXPECT_EQ(device[0].limited_until, PolicyDevice::kNow + milliseconds(40)) << "it has had two limits";
}

TEST(Reserve, a_burst_is_what_was_not_used_of_a_limit_up_to_its_size) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(0, 10, 3, 2)), Claimant(2, {})});
  device.Pass(milliseconds(30));
  const QueueView idle = device.Leave(0);
  device.Pass(seconds(1));
  device.Return(idle);
  device.Leave(0);  // the other one
  const Duration before = device[0].service;
  device.Pass(milliseconds(5));
  EXPECT_EQ(device[0].service - before, milliseconds(5));
  device.Pass(milliseconds(5));
  EXPECT_LE(device[0].service - before, milliseconds(8)) << "and with the next period";
}

TEST(Reserve, other_hints_bring_no_fresh_period) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(0, 10, 3)), Claimant(2, {})});
  for (int i = 0; i < 100; ++i) {
    device.Pass(milliseconds(1));
    device[0].hints.limit_us = i % 2 == 0 ? 2000 : 3000;
    device[0].newly_ready = true;
  }
  EXPECT_LE(device[0].service, milliseconds(33));
}

TEST(Reserve, other_periods_bring_no_fresh_period) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(30, 100)), Claimant(2, Reserved(600, 1000))});
  Hints short_period;
  short_period.guarantee_us = 300;
  short_period.period_us = 1000;
  for (int i = 0; i < 32; ++i) {
    device.Pass(milliseconds(30));
    for (const Hints& hints : {short_period, Reserved(30, 100)}) {
      device[0].hints = hints;
      device[0].newly_ready = true;
      device.Pass(microseconds(500));
    }
  }
  EXPECT_LE(device[0].service, milliseconds(400)) << "30 % and a little of what is left over";
  EXPECT_GE(device[1].service, milliseconds(580));
}

TEST(Reserve, a_shorter_period_keeps_the_rest_of_the_present_one) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(300, 1000)), Claimant(2, {.weight = WEIGHT_MAX})});
  device.Pass(milliseconds(100));
  device[0].hints = Reserved(30, 100);
  device[0].newly_ready = true;
  const Duration before = device[0].service;
  device.Pass(milliseconds(1900));
  EXPECT_GE(device[0].service - before, milliseconds(450));
}

TEST(Reserve, a_guarantee_that_goes_and_comes_back_brings_no_fresh_period) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(30, 100)), Claimant(2, {.weight = WEIGHT_MAX})});
  for (int i = 0; i < 50; ++i) {
    device.Pass(milliseconds(20));
    device[0].hints = {};
    device.Decide();
    device[0].hints = Reserved(30, 100);
    device[0].newly_ready = true;
  }
  EXPECT_GE(device[0].service, milliseconds(300));
  EXPECT_LE(device[0].service, milliseconds(330)) << "ten guarantees, and a little of what is left over";
}

TEST(Reserve, a_limit_that_goes_and_comes_back_brings_no_fresh_period) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(0, 10, 3))});
  for (int i = 0; i < 100; ++i) {
    device.Pass(milliseconds(1));
    device[0].hints = {};
    device.Decide();
    device[0].hints = Reserved(0, 10, 3);
    device[0].newly_ready = true;
  }
  EXPECT_LE(device[0].service, milliseconds(33));
}

TEST(Reserve, a_reservation_that_comes_back_later_is_had_at_once_and_owes_nothing_for_the_time_without) {
  BusyDevice device(Reserve(), {Claimant(1, Reserved(5, 10, 5)), Claimant(2, {.weight = WEIGHT_MIN})});
  device.Pass(milliseconds(33));
  device[0].hints = {};
  device.Pass(seconds(1));
  device[0].hints = Reserved(5, 10, 5);
  device[0].newly_ready = true;
  Duration before = device[0].service;
  device.Pass(milliseconds(5));
  EXPECT_EQ(device[0].service - before, milliseconds(5));
  before = device[0].service;
  device.Pass(milliseconds(100));
  EXPECT_EQ(device[0].service - before, milliseconds(50));
}

// ---- in the scheduler ----

class Limited : public Timeline {
 protected:
  Limited() {
    sliceable_ = false;
    scheduler_.SetPolicy(Reserve());
  }
  void Reservation(uint64_t id, const Hints& hints) { scheduler_.SetHints(QueueId{id}, hints); }
  // How long it may run in this time.
  Duration Runs(uint64_t id, Duration time) {
    Duration runs{};
    for (Duration passed{}; passed < time; passed += microseconds(100)) {
      if (Timeline::Runs(id)) {
        runs += microseconds(100);
        RetireOne(id);
      }
      Pass(microseconds(100));
    }
    return runs;
  }
};

// Its requests have pauses. So it is idle in between, and the policy sees it only when it is ready again.
TEST_F(Limited, a_process_owes_nothing_for_requests_that_it_had_alone) {
  Add(1, 0);
  Add(2, 0);
  uint64_t requests = 0;
  for (; requests < 100; ++requests) {
    Progress(1, requests + 1, requests);
    Pass(milliseconds(50));
    Progress(1, requests + 1, requests + 1);
    Pass(milliseconds(50));
  }
  Busy(2);
  Progress(1, requests + 1, requests);
  Duration ran{};
  for (int i = 0; i < 100; ++i) {
    if (Timeline::Runs(1)) ran += milliseconds(1);
    if (Timeline::Runs(2)) RetireOne(2);
    Pass(milliseconds(1));
  }
  EXPECT_GE(ran, milliseconds(40));
}

TEST_F(Limited, a_queue_says_that_it_has_used_up_its_limit_and_for_how_long) {
  Add(1, 0);
  Reservation(1, Reserved(0, 100, 30));
  Busy(1);
  Runs(1, milliseconds(50));
  ASSERT_FALSE(Timeline::Runs(1));
  const QueueStats stats = StatsOf(1);
  EXPECT_EQ(stats.wait_reason, WaitReason::kLimited);
  EXPECT_NEAR(InSeconds(stats.limited_for), 0.05, 0.001);
  Pass(milliseconds(51));
  EXPECT_TRUE(Timeline::Runs(1));
  EXPECT_EQ(StatsOf(1).wait_reason, WaitReason::kNone);
}

TEST_F(Limited, the_watchdog_lets_nobody_run_who_has_used_up_its_limit) {
  for (uint64_t id : {1, 2, 3}) Add(id, 0);
  Reservation(1, Reserved(0, 1000, 10));
  for (uint64_t id : {1, 2, 3}) Busy(id);
  bool window = false;
  Duration limited{};
  for (int i = 0; i < 300; ++i) {  // nothing retires
    Pass(milliseconds(1));
    window |= Timeline::Runs(2) && Timeline::Runs(3);
    limited += milliseconds(Timeline::Runs(1));
  }
  EXPECT_TRUE(window);
  EXPECT_LE(limited, milliseconds(10));
  EXPECT_GE(StatsOf(1).service, milliseconds(8)) << "as it retires nothing, it may run on after a hold";
  EXPECT_EQ(StatsOf(1).wait_reason, WaitReason::kLimited);
}

// What it receives in windows counts as well. Otherwise one that hangs would lift all limits.
TEST_F(Limited, a_limit_holds_beside_a_queue_that_hangs) {
  Add(1, 0);
  Add(2, 0);
  Reservation(1, Reserved(0, 100, 10));
  Reservation(2, Reserved(85, 100));
  Busy(1);
  Busy(2);
  Runs(1, seconds(10));
  EXPECT_LE(StatsOf(1).service, milliseconds(1010));
  EXPECT_GE(StatsOf(1).service, milliseconds(500));
}

TEST_F(Limited, what_a_queue_does_for_another_one_that_waits_for_it_counts) {
  for (uint64_t id : {1, 2, 3}) Add(id, 0);
  Reservation(1, Reserved(0, 100, 10));
  for (uint64_t id : {1, 2, 3}) Busy(id);
  const Dependency dependency{QueueId{1}, kEndless};
  scheduler_.SetDependencies(QueueId{2}, {&dependency, 1});
  for (int i = 0; i < 100'000; ++i) {
    for (uint64_t id : {1, 3}) {
      if (Timeline::Runs(id)) RetireOne(id);
    }
    Pass(microseconds(100));
  }
  EXPECT_LE(StatsOf(1).service, milliseconds(1010));
  EXPECT_GE(StatsOf(1).service, milliseconds(900));
}

TEST_F(Limited, a_limit_is_exact_beside_a_guarantee_with_a_far_shorter_period) {
  Add(1, 0, kGpu, /*process=*/10);
  Add(2, 0, kGpu, /*process=*/10);
  Reservation(1, {.period_us = 1'000'000, .limit_us = 200});
  Reservation(2, {.guarantee_us = 10, .period_us = 1000});
  Busy(1);
  EXPECT_LE(Runs(1, seconds(10)), milliseconds(3));
}

TEST_F(Limited, a_shorter_timeslice_ends_the_present_one) {
  scheduler_.SetTimeslice(seconds(10));
  Add(1, 0);
  Add(2, 0);
  Busy(1);
  Busy(2);
  EXPECT_EQ(Runs(1, seconds(1)), seconds(1));
  scheduler_.SetTimeslice(milliseconds(5));
  Decide();
  EXPECT_LE(Runs(1, milliseconds(50)), milliseconds(30));
}

TEST_F(Limited, whoever_waits_for_it_waits_until_its_next_period) {
  Add(1, 0);
  Add(2, 0);
  Reservation(1, Reserved(0, 100, 10));
  Busy(1);
  Runs(1, milliseconds(20));
  const Dependency dependency{QueueId{1}, kEndless};
  scheduler_.SetDependencies(QueueId{2}, {&dependency, 1});
  Busy(2);
  Pass(milliseconds(70));
  EXPECT_FALSE(Timeline::Runs(1));
  Pass(milliseconds(11));
  EXPECT_TRUE(Timeline::Runs(1));
}

TEST_F(Limited, less_urgent_queues_run_when_the_most_urgent_one_has_used_up_its_limit) {
  scheduler_.SetPolicy(*ParsePolicySetting("HPF/RESERVE"));
  Add(1, 0);
  Add(2, 0);
  Hints urgent = Reserved(0, 100, 10);
  urgent.priority = 5;
  Reservation(1, urgent);
  Busy(1);
  Busy(2);
  EXPECT_NEAR(InSeconds(Runs(1, milliseconds(50))), 0.01, 0.001);
  EXPECT_TRUE(Timeline::Runs(2));
  EXPECT_EQ(StatsOf(1).wait_reason, WaitReason::kLimited);
}

// Programs of one tenant on a device that cannot interrupt them. Each has one command, ends, and the next one
// begins.
class ShortPrograms : public testing::Test {
 protected:
  ShortPrograms() { scheduler_.SetPolicy(*ParsePolicySetting("RESERVE:tenant")); }

  // Returns how much of the device's time their commands have had until then.
  Duration RunUntil(TimePoint end, Duration command) {
    Duration had{};
    while (now_ < end) {
      for (bool runs = Come(TenantId{1}, DeviceId{1}); !runs && now_ < end; runs = Runs())
        Pass(microseconds(500));
      const TimePoint done = std::min(now_ + command, end);
      had += done - now_;
      while (now_ < done) Pass(microseconds(500));
      Leave();
      Pass(pause_);
    }
    return had;
  }
  // A program begins with its command. Returns whether it may run.
  bool Come(TenantId tenant, DeviceId device) {
    ++program_;
    scheduler_.SetTenant(ProcessId{program_}, tenant);
    scheduler_.AddQueue(QueueId{program_}, ProcessId{program_}, device, {}, now_, {.reports_overruns = true});
    Report(0);
    return Runs();
  }
  // Its command is done, and it ends.
  void Leave() {
    Report(1);
    scheduler_.RemoveQueue(QueueId{program_}, now_);
    scheduler_.RemoveProcess(ProcessId{program_});
    Pass(milliseconds(1));
  }
  bool Runs() const { return sink_.Of(QueueId{program_}).run; }
  void Report(uint64_t retired) {
    scheduler_.Progress(QueueId{program_}, 1, retired, now_);
    scheduler_.Decide(now_, sink_);
  }
  void Pass(Duration time) {
    now_ += time;
    scheduler_.Decide(now_, sink_);
  }

  Duration pause_{};  // after the end of a program
  TimePoint now_{seconds(1)};
  uint64_t program_ = 0;  // the last one
  Scheduler scheduler_{{}};
  Recorder sink_;
};

TEST_F(ShortPrograms, have_no_more_than_their_tenants_limit_together) {
  scheduler_.SetTenantShare(TenantId{1}, {.period_us = 100'000, .limit_us = 20'000});
  const Duration had = RunUntil(now_ + seconds(10), milliseconds(100));
  EXPECT_LE(had, milliseconds(2100));
  EXPECT_GE(had, milliseconds(1900));
}

// While it has no process, its periods pass as if it were idle.
TEST_F(ShortPrograms, of_a_tenant_that_pauses_have_its_limit_in_each_period) {
  scheduler_.SetTenantShare(TenantId{1}, {.period_us = 100'000, .limit_us = 20'000});
  pause_ = milliseconds(200);
  EXPECT_GE(RunUntil(now_ + seconds(10), milliseconds(20)), milliseconds(850));
}

// So the memory for tenants without processes is bounded.
TEST_F(ShortPrograms, of_64_other_tenants_that_leave_later_make_the_first_one_forgotten) {
  for (const uint64_t others : {63, 64}) {
    const TenantId tenant{1000 * others};
    scheduler_.SetTenantShare(tenant, {.period_us = 1'000'000, .limit_us = 1000});
    Come(tenant, DeviceId{1});
    Pass(milliseconds(5));
    Leave();
    for (uint64_t i = 1; i <= others; ++i) {
      Come(TenantId{1000 * others + i}, DeviceId{1});
      Leave();
    }
    EXPECT_EQ(Come(tenant, DeviceId{1}), others == 64) << others;
    Leave();
  }
}

TEST_F(ShortPrograms, on_64_other_devices_that_leave_later_make_those_of_the_first_device_forgotten) {
  for (const uint64_t others : {63, 64}) {
    const DeviceId device{1000 * others};
    scheduler_.SetTenantShare(TenantId{1}, {.period_us = 1'000'000, .limit_us = 1000});
    Come(TenantId{1}, device);
    Pass(milliseconds(5));
    Leave();
    for (uint64_t i = 1; i <= others; ++i) {
      Come(TenantId{2}, DeviceId{1000 * others + i});
      Leave();
    }
    EXPECT_EQ(Come(TenantId{1}, device), others == 64) << others;
    Leave();
    Pass(seconds(6));  // all are forgotten
  }
}

TEST_F(Limited, a_process_that_releases_its_only_stream_keeps_what_it_owes_whatever_others_do) {
  Add(1, 0);
  Add(2, 0);
  Reservation(1, Reserved(0, 500, 10));
  Busy(1);
  Runs(1, milliseconds(20));
  ASSERT_FALSE(Timeline::Runs(1));
  scheduler_.RemoveQueue(QueueId{1}, now_);
  Decide();
  Add(3, 0);  // somebody else comes, and the slices are decided anew
  Pass(milliseconds(10));
  Add(4, 0, kGpu, /*process=*/1);
  Reservation(4, Reserved(0, 500, 10));
  Busy(4);
  EXPECT_EQ(Runs(4, milliseconds(100)), Duration::zero());
}

// Its command ran for so long that two periods have to pay for it.
TEST_F(Limited, a_process_that_releases_its_only_stream_keeps_what_it_owes_until_that_is_paid) {
  const auto add = [&](uint64_t id) {
    scheduler_.AddQueue(QueueId{id}, ProcessId{1}, DeviceId{kGpu}, Reserved(0, 1000, 10), now_,
                        {.reports_overruns = true});
    Progress(id, 1, 0);
  };
  add(1);
  Pass(milliseconds(30));
  Progress(1, 1, 1);
  scheduler_.RemoveQueue(QueueId{1}, now_);
  Decide();
  Pass(milliseconds(1500));
  add(2);
  EXPECT_FALSE(Timeline::Runs(2));
  Pass(milliseconds(475));  // the third period has begun
  EXPECT_TRUE(Timeline::Runs(2));
}

TEST_F(Limited, a_limit_ends_with_the_policy) {
  Add(1, 0);
  Reservation(1, Reserved(0, 100, 10));
  Busy(1);
  Runs(1, milliseconds(20));
  ASSERT_FALSE(Timeline::Runs(1));
  scheduler_.SetPolicy(*FindPolicy(kDefaultPolicy));
  Decide();
  EXPECT_TRUE(Timeline::Runs(1));
}

TEST_F(Limited, the_part_of_a_device_that_is_guaranteed_is_that_of_its_processes) {
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Add(3, 0, kGpu, 20);
  Add(4, 0, kGpu + 1, 30);
  Reservation(1, Reserved(3, 10));
  Reservation(2, Reserved(2, 10));
  Reservation(4, Reserved(9, 10));
  auto with = [&](uint64_t id, uint64_t process, const Hints& hints) {
    return scheduler_.GuaranteedWith(QueueId{id}, ProcessId{process}, DeviceId{kGpu}, hints);
  };
  EXPECT_DOUBLE_EQ(with(3, 20, Reserved(5, 10)), 0.8) << "the largest of a process's queues counts";
  EXPECT_DOUBLE_EQ(with(1, 10, Reserved(1, 10)), 0.2) << "of the other queue";
  EXPECT_DOUBLE_EQ(with(99, 40, Reserved(1, 2)), 0.8) << "of a new process";
}

TEST(Reservations, a_process_has_the_largest_guarantee_and_the_strictest_limit_of_its_queues) {
  Hints both;
  CombineReservations(both, Reserved(2, 10, 8), Reserved(10, 100, 20, 10));
  EXPECT_EQ(both.period_us, 100'000);
  EXPECT_EQ(both.guarantee_us, 20'000) << "20 % of the other period";
  EXPECT_EQ(both.limit_us, 20'000);
  EXPECT_EQ(both.burst_us, 10'000);
  CombineReservations(both, Reserved(20, 100), Reserved(1, 10, 3, 2));
  EXPECT_EQ(both.period_us, 100'000);
  EXPECT_EQ(both.guarantee_us, 20'000);
  EXPECT_EQ(both.limit_us, 30'000);
  EXPECT_EQ(both.burst_us, 20'000);
  CombineReservations(both, Hints{}, Reserved(0, 100, 20));
  EXPECT_EQ(both.limit_us, 20'000) << "another queue brings no freedom";
  EXPECT_EQ(both.period_us, 100'000);
  CombineReservations(both, Hints{}, Hints{});
  EXPECT_TRUE(HasReservationOf(both, {}));
}

TEST(Reservations, a_small_guarantee_of_one_queue_does_not_take_away_the_limit_of_another) {
  const Hints limited = {.period_us = 1'000'000, .limit_us = 900};
  const Hints guaranteed = {.guarantee_us = 1, .period_us = 1000};
  Hints both;
  CombineReservations(both, limited, guaranteed);
  EXPECT_EQ(both.guarantee_us, 1000);
  EXPECT_EQ(both.period_us, 1'000'000);
  EXPECT_EQ(both.limit_us, 900);
}

}  // namespace
}  // namespace xsched::sched::reserve
