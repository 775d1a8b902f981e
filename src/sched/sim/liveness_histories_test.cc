// Histories that once broke a promise (promises.h), each in its smallest form.
#include <gtest/gtest.h>

#include "sched/sim/world.h"

namespace xsched::sched::sim {
namespace {

constexpr ProcessScript kLevel1{.level = 1};
constexpr ProcessScript kLevel2{.level = 2};
constexpr ProcessScript kLevel3{.level = 3};

void ExpectKept(const History& history) { EXPECT_EQ(Run(history).broken, "") << ToString(history); }

QueueScript Ahead(int process, Priority priority) {
  return {
      .process = process, .priority = priority, .style = Style::kLaunchesAhead, .command = milliseconds(2)};
}

// ---- the watchdog lets go of slices as well as of gates, every time ----

TEST(LivenessHistories, an_urgent_kernel_that_waits_for_another_process_goes_on_though_slices_are_set) {
  QueueScript waiter = Ahead(1, 5);
  waiter.wait = Wait::kHidden;
  ExpectKept({.processes = {kLevel3, kLevel3}, .queues = {Ahead(0, 0), waiter}, .length = milliseconds(300)});
}

TEST(LivenessHistories, kernels_of_two_classes_that_wait_for_each_other_go_on) {
  for (const Priority first : {0, 10}) {
    QueueScript one{
        .process = 0, .priority = first, .command = milliseconds(2), .wait = Wait::kGang, .target = 1};
    QueueScript other{
        .process = 1, .priority = 5, .command = milliseconds(2), .wait = Wait::kGang, .target = 0};
    ExpectKept({.processes = {kLevel3, kLevel3}, .queues = {one, other}, .length = milliseconds(300)});
  }
}

TEST(LivenessHistories, a_known_wait_for_a_device_where_slices_are_set_ends) {
  QueueScript waiter{.process = 1, .device = 1, .priority = 5, .style = Style::kLaunchesAhead};
  waiter.wait = Wait::kKnown;
  waiter.target = 1;
  QueueScript here = Ahead(0, 0);
  QueueScript there = Ahead(0, 0);
  QueueScript urgent = Ahead(2, 5);
  here.device = 1;
  there.device = urgent.device = 2;
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {here, there, waiter, urgent},
              .length = milliseconds(300)});
}

TEST(LivenessHistories, each_step_that_waits_for_a_held_queue_costs_the_same) {
  QueueScript waiter{.process = 1, .priority = 10, .pause = milliseconds(5), .wait = Wait::kHidden};
  QueueScript held = Ahead(0, 0);
  held.command = milliseconds(1);
  ExpectKept({.processes = {kLevel2, kLevel2}, .queues = {held, waiter}, .length = milliseconds(1500)});
}

TEST(LivenessHistories, one_long_command_at_the_start_does_not_make_later_waits_long) {
  QueueScript waiter{.process = 1, .priority = 10, .pause = milliseconds(5)};
  waiter.long_task = 0;
  waiter.long_command = milliseconds(600);
  waiter.wait = Wait::kHidden;
  waiter.every = 2;
  QueueScript held = Ahead(0, 0);
  held.command = milliseconds(3);
  ExpectKept({.processes = {kLevel2, kLevel2}, .queues = {held, waiter}, .length = milliseconds(2500)});
}

// ---- turns ----

TEST(LivenessHistories, three_classes_share_a_device_while_the_most_urgent_is_idle) {
  QueueScript idle{.process = 0, .priority = 10, .style = Style::kPeriodic, .pause = milliseconds(5000)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3, kLevel3},
              .queues = {idle, Ahead(1, 5), Ahead(2, 5), Ahead(3, 0)},
              .length = milliseconds(1500)});
}

TEST(LivenessHistories, one_of_two_that_take_turns_may_wait_for_a_third_class) {
  QueueScript idle{.process = 0, .priority = 10, .style = Style::kPeriodic, .pause = milliseconds(1000)};
  QueueScript waiter = Ahead(3, 0);
  waiter.wait = Wait::kHidden;
  waiter.target = 1;
  waiter.every = 10;
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3, kLevel3},
              .queues = {idle, Ahead(1, -5), Ahead(2, 0), waiter},
              .length = milliseconds(1500)});
}

TEST(LivenessHistories, turns_are_taken_until_the_slices_of_one_that_has_gone_are_given_back) {
  QueueScript gone = Ahead(1, 0);
  gone.start = milliseconds(69);
  gone.end = milliseconds(134);
  QueueScript seldom{.process = 2, .priority = -5, .command = milliseconds(2), .pause = milliseconds(150)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {Ahead(0, -5), gone, seldom},
              .length = milliseconds(400)});
}

// ---- processes that cannot be taken off the device ----

TEST(LivenessHistories, beside_a_stopped_process_whose_kernel_runs_on_another_gets_the_device) {
  QueueScript idle{.process = 0, .priority = 10, .style = Style::kPeriodic, .pause = milliseconds(1000)};
  QueueScript runs_on{.process = 1, .long_task = 0, .long_command = milliseconds(3000)};
  QueueScript other = Ahead(2, 0);
  other.start = milliseconds(5);
  const Event stop{.at = milliseconds(4),
                   .kind = EventKind::kStop,
                   .subject = 1,
                   .length = kAlways,
                   .notice = milliseconds(50)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {idle, runs_on, other},
              .events = {stop},
              .length = milliseconds(500),
              .survivor = 2});
}

TEST(LivenessHistories, a_stopped_urgent_process_leaves_the_device_to_others_though_its_kernel_runs_on) {
  QueueScript runs_on{.process = 0, .priority = 10, .long_task = 0, .long_command = milliseconds(3000)};
  const Event stop{.at = milliseconds(4),
                   .kind = EventKind::kStop,
                   .subject = 0,
                   .length = kAlways,
                   .notice = milliseconds(50)};
  ExpectKept({.processes = {kLevel3, kLevel3},
              .queues = {runs_on, Ahead(1, 0)},
              .events = {stop},
              .length = milliseconds(500),
              .survivor = 1});
}

TEST(LivenessHistories, a_program_that_suspends_one_of_its_queues_leaves_the_device_to_others) {
  QueueScript idle{.process = 0, .priority = 10, .style = Style::kPeriodic, .pause = milliseconds(1000)};
  const Event suspend{.at = milliseconds(4), .kind = EventKind::kSuspend, .subject = 0, .length = kAlways};
  ExpectKept({.processes = {kLevel3, kLevel3},
              .queues = {Ahead(0, 10), idle, Ahead(1, 0)},
              .events = {suspend},
              .length = milliseconds(500),
              .survivor = 1});
}

// ---- slices follow work and inherited urgency ----

TEST(LivenessHistories,
     a_process_with_an_idle_urgent_queue_shares_the_device_with_equals_of_its_other_queue) {
  QueueScript urgent{.process = 1, .priority = 5, .command = milliseconds(2), .pause = milliseconds(50)};
  ExpectKept({.processes = {kLevel3, kLevel3},
              .queues = {Ahead(0, 0), Ahead(1, 0), urgent},
              .length = milliseconds(400)});
}

TEST(LivenessHistories,
     a_process_that_stands_at_the_gate_of_its_less_urgent_queue_does_not_keep_a_long_slice) {
  QueueScript held = Ahead(1, -5);
  held.start = milliseconds(76);
  const QueueScript urgent{
      .process = 1, .priority = 10, .command = milliseconds(2), .pause = milliseconds(50)};
  ExpectKept(
      {.processes = {kLevel3, kLevel3}, .queues = {Ahead(0, 0), held, urgent}, .length = milliseconds(400)});
}

TEST(LivenessHistories, a_process_that_an_urgent_one_waits_for_gets_time_on_the_device) {
  QueueScript awaited{.process = 0,
                      .priority = 5,
                      .style = Style::kPeriodic,
                      .command = milliseconds(5),
                      .commands = 2,
                      .pause = milliseconds(10)};
  QueueScript waiter{.process = 1,
                     .priority = 10,
                     .style = Style::kPeriodic,
                     .command = milliseconds(2),
                     .commands = 2,
                     .pause = milliseconds(10),
                     .wait = Wait::kKnown};
  ExpectKept({.processes = {kLevel3, kLevel3}, .queues = {awaited, waiter}, .length = milliseconds(300)});
}

// ---- which queues are watched ----

TEST(LivenessHistories, two_kernels_that_wait_for_each_other_go_on_after_a_stopped_urgent_process) {
  const QueueScript one{.process = 0, .command = milliseconds(2), .wait = Wait::kGang, .target = 1};
  const QueueScript other{.process = 1, .command = milliseconds(2), .wait = Wait::kGang, .target = 0};
  QueueScript urgent = Ahead(2, 5);
  urgent.command = microseconds(20);
  const Event stop{.at = microseconds(200),
                   .kind = EventKind::kStop,
                   .subject = 2,
                   .length = kAlways,
                   .notice = milliseconds(60)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {one, other, urgent},
              .events = {stop},
              .length = milliseconds(300),
              .survivor = 2});
}

TEST(LivenessHistories, a_short_window_for_one_queue_does_not_make_another_one_wait_anew) {
  constexpr ProcessScript kTimesOut{.level = 3, .fault = Fault::kTimedOut};
  QueueScript held = Ahead(0, 0);
  held.pause = milliseconds(20);
  const QueueScript urgent{
      .process = 1, .priority = 5, .command = milliseconds(2), .pause = milliseconds(50)};
  QueueScript needed = Ahead(2, 0);
  needed.command = microseconds(500);
  needed.wait = Wait::kGang;
  needed.target = 3;
  QueueScript partner = Ahead(3, 5);
  partner.wait = Wait::kGang;
  partner.target = 2;
  QueueScript waiter = Ahead(3, 5);
  waiter.wait = Wait::kHidden;
  waiter.target = 2;
  waiter.every = 2;
  ExpectKept({.processes = {kLevel3, kLevel3, kTimesOut, kLevel3},
              .queues = {held, urgent, needed, partner, waiter},
              .length = milliseconds(129),
              .survivor = 2,
              .survivor_works = false});
}

TEST(LivenessHistories, other_hints_do_not_make_a_silent_device_wait_longer) {
  QueueScript gone = Ahead(0, 5);
  gone.end = milliseconds(46);
  QueueScript waiter = Ahead(2, 0);
  waiter.wait = Wait::kHidden;
  waiter.target = 1;
  const Event raise{
      .at = milliseconds(105), .kind = EventKind::kHints, .subject = 2, .priority = 5, .utilization = 0};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {gone, Ahead(1, 0), waiter},
              .events = {raise},
              .length = milliseconds(300)});
}

TEST(LivenessHistories, a_wait_across_devices_ends_though_nobody_is_held_on_the_waiters_own_device) {
  for (const ProcessScript& process : {kLevel1, kLevel3}) {
    QueueScript urgent = Ahead(0, 10);
    QueueScript waiter = Ahead(1, 10);
    QueueScript held = Ahead(2, 0);
    urgent.device = held.device = 1;
    waiter.wait = held.wait = Wait::kGang;
    waiter.target = 2;
    held.target = 1;
    ExpectKept({.processes = {process, process, process},
                .queues = {urgent, waiter, held},
                .length = milliseconds(500)});
  }
}

TEST(LivenessHistories, a_watch_goes_on_when_the_queue_that_was_held_longest_goes) {
  QueueScript waiter{
      .process = 0, .priority = 5, .command = milliseconds(2), .wait = Wait::kGang, .target = 2};
  QueueScript gone = Ahead(1, 0);
  gone.end = milliseconds(191);
  gone.long_task = 0;
  gone.long_command = milliseconds(500);
  const QueueScript awaited{.process = 2, .start = milliseconds(121), .wait = Wait::kGang};
  ExpectKept({.processes = {kLevel1, kLevel1, kLevel1},
              .queues = {waiter, gone, awaited},
              .length = milliseconds(265)});
}

TEST(LivenessHistories, two_that_wait_and_take_turns_are_watched_together) {
  QueueScript first{
      .process = 0, .utilization = 0, .command = milliseconds(2), .wait = Wait::kGang, .target = 2};
  QueueScript second{
      .process = 1, .utilization = 0, .style = Style::kLaunchesAhead, .command = milliseconds(2)};
  QueueScript waits_for_first{.process = 2, .command = milliseconds(2), .wait = Wait::kGang, .target = 0};
  QueueScript waits_for_second = Ahead(3, 0);
  waits_for_second.wait = Wait::kHidden;
  waits_for_second.target = 1;
  ExpectKept({.policy = kPolicyUtilizationPartition,
              .processes = {kLevel1, kLevel1, kLevel1, kLevel1},
              .queues = {first, second, waits_for_first, waits_for_second},
              .length = milliseconds(300)});
}

TEST(LivenessHistories, what_is_lent_from_another_device_does_not_make_a_silent_one_wait_longer) {
  const QueueScript one{.process = 0, .command = milliseconds(2), .wait = Wait::kGang, .target = 2};
  const QueueScript other{.process = 2, .command = milliseconds(2), .wait = Wait::kGang, .target = 0};
  QueueScript lends = Ahead(1, 5);
  lends.device = 1;
  lends.command = milliseconds(30);
  lends.wait = Wait::kKnown;
  QueueScript beside = Ahead(3, 5);
  beside.device = 1;
  const QueueScript seldom{.process = 3,
                           .priority = 5,
                           .command = milliseconds(5),
                           .pause = milliseconds(150),
                           .start = milliseconds(108)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3, kLevel3},
              .queues = {one, lends, other, beside, seldom},
              .length = milliseconds(400)});
}

TEST(LivenessHistories, a_watch_adds_up_between_the_tasks_of_a_more_urgent_program) {
  const QueueScript urgent{
      .process = 2, .priority = 10, .command = milliseconds(5), .pause = milliseconds(50)};
  QueueScript waiter = Ahead(3, 5);
  waiter.wait = Wait::kHidden;
  const Event stop{.at = milliseconds(174),
                   .kind = EventKind::kStop,
                   .subject = 0,
                   .length = microseconds(130404),
                   .notice = microseconds(28095)};
  const Event kill{.at = milliseconds(388), .subject = 1, .notice = microseconds(1267)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3, kLevel3},
              .queues = {Ahead(0, 0), Ahead(1, 0), urgent, waiter},
              .events = {kill, stop},
              .length = milliseconds(700)});
}

TEST(LivenessHistories, a_turn_is_on_every_device_where_its_process_competes) {
  QueueScript second_here = Ahead(1, 5);
  second_here.start = milliseconds(29);
  QueueScript second_there = Ahead(1, 5);
  second_there.device = 1;
  QueueScript gone_there = Ahead(2, 10);
  gone_there.device = 1;
  gone_there.end = milliseconds(141);
  QueueScript gone_here = Ahead(3, 5);
  gone_here.end = milliseconds(228);
  QueueScript waits_there = Ahead(4, 5);
  waits_there.device = 1;
  waits_there.wait = Wait::kHidden;
  QueueScript urgent_here = Ahead(4, 10);
  urgent_here.end = milliseconds(396);
  ExpectKept(
      {.processes = {kLevel3, kLevel3, {.level = 3, .reaction = microseconds(300)}, kLevel3, kLevel3},
       .queues = {Ahead(0, 5), second_here, second_there, gone_there, gone_here, waits_there, urgent_here},
       .length = milliseconds(600)});
}

TEST(LivenessHistories, other_hints_do_not_make_two_that_take_turns_wait_longer) {
  QueueScript one = Ahead(0, -5);
  QueueScript other = Ahead(1, -5);
  one.wait = other.wait = Wait::kGang;
  one.target = 1;
  const QueueScript gone{.process = 2, .command = milliseconds(10), .commands = 4, .end = milliseconds(28)};
  const Event raise{.at = milliseconds(122), .kind = EventKind::kHints, .subject = 0};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {one, other, gone},
              .events = {raise},
              .length = milliseconds(400)});
}

TEST(LivenessHistories, other_hints_of_the_awaited_queue_do_not_make_its_waiter_wait_longer) {
  QueueScript waiter = Ahead(1, 0);
  waiter.start = microseconds(31090);
  waiter.wait = Wait::kHidden;
  const QueueScript seldom{.process = 2, .priority = 10, .pause = milliseconds(150)};
  const Event raise{.at = milliseconds(204), .kind = EventKind::kHints, .subject = 0};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {Ahead(0, -5), waiter, seldom},
              .events = {raise},
              .length = milliseconds(500)});
}

// The urgent process interrupts the window of the wait.
TEST(LivenessHistories, a_wait_ends_in_time_after_a_more_urgent_process_was_killed) {
  QueueScript urgent = Ahead(0, 10);
  urgent.start = milliseconds(201);
  const QueueScript other{
      .process = 1, .command = milliseconds(30), .commands = 2, .pause = milliseconds(50)};
  QueueScript awaited = Ahead(2, 0);
  awaited.command = microseconds(20);
  awaited.commands = 100;
  QueueScript waiter{.process = 3, .priority = 5, .style = Style::kLaunchesAhead, .commands = 4};
  waiter.start = milliseconds(107);
  waiter.wait = Wait::kHidden;
  waiter.target = 2;
  waiter.every = 2;
  const Event kill{.at = milliseconds(356), .subject = 0, .notice = microseconds(2137)};
  ExpectKept({.processes = {kLevel3, {.level = 1, .overrun = 1}, kLevel3, kLevel3},
              .queues = {urgent, other, awaited, waiter},
              .events = {kill},
              .length = milliseconds(600)});
}

TEST(LivenessHistories,
     where_two_wait_for_a_third_of_equal_claim_the_device_does_not_stand_still_for_two_turns) {
  QueueScript first = Ahead(1, 0);
  QueueScript second = Ahead(3, 0);
  first.wait = second.wait = Wait::kHidden;
  const QueueScript urgent{.process = 2,
                           .priority = 10,
                           .command = milliseconds(2),
                           .commands = 4,
                           .pause = milliseconds(150),
                           .start = milliseconds(152)};
  ExpectKept({.processes = {{.level = 3, .reaction = microseconds(20)}, kLevel3, kLevel3, kLevel3},
              .queues = {Ahead(0, 0), first, urgent, second},
              .length = milliseconds(295)});
}

TEST(LivenessHistories, other_hints_of_a_process_do_not_cost_another_its_place_in_the_ring) {
  const QueueScript urgent_of_first{.process = 0,
                                    .priority = 5,
                                    .style = Style::kPeriodic,
                                    .command = milliseconds(2),
                                    .pause = milliseconds(50),
                                    .start = milliseconds(102)};
  const QueueScript pauses{.process = 1, .command = milliseconds(2), .pause = milliseconds(1)};
  QueueScript gone = Ahead(1, 5);
  gone.end = milliseconds(46);
  const QueueScript seldom{
      .process = 2, .priority = 10, .command = microseconds(500), .commands = 4, .pause = milliseconds(150)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {Ahead(0, 0), urgent_of_first, pauses, gone, seldom},
              .length = milliseconds(186),
              .survivor = 1});
}

TEST(LivenessHistories, nor_does_a_process_that_comes_to_another_device) {
  QueueScript comes = Ahead(0, 0);
  comes.start = milliseconds(66);
  QueueScript one = Ahead(0, 0);
  QueueScript other = Ahead(2, 0);
  QueueScript seldom{.process = 1, .priority = 10, .command = milliseconds(2), .pause = milliseconds(150)};
  one.device = other.device = seldom.device = 1;
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {comes, one, seldom, other},
              .length = milliseconds(126)});
}

TEST(LivenessHistories, a_turn_that_more_urgent_queues_take_away_goes_on_after_them) {
  const QueueScript urgent_of_first{.process = 0,
                                    .priority = 5,
                                    .style = Style::kPeriodic,
                                    .command = milliseconds(2),
                                    .pause = milliseconds(50),
                                    .start = microseconds(102444)};
  const QueueScript pauses{.process = 1, .command = milliseconds(2), .pause = milliseconds(1)};
  const QueueScript urgent{.process = 2,
                           .priority = 10,
                           .style = Style::kPeriodic,
                           .command = microseconds(500),
                           .commands = 4,
                           .pause = milliseconds(150)};
  ExpectKept({.processes = {kLevel3,
                            {.level = 3, .reaction = microseconds(300), .call = microseconds(600)},
                            kLevel3},
              .queues = {Ahead(0, 0), urgent_of_first, pauses, urgent},
              .length = milliseconds(243),
              .survivor = 1});
}

TEST(LivenessHistories, a_turn_that_is_interrupted_all_the_time_ends) {
  QueueScript waiter = Ahead(1, 0);
  waiter.start = milliseconds(147);
  waiter.wait = Wait::kHidden;
  const QueueScript urgent{
      .process = 2, .priority = 5, .command = microseconds(500), .pause = milliseconds(1)};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {Ahead(0, 0), waiter, urgent},
              .length = milliseconds(372)});
}

TEST(LivenessHistories, a_late_report_does_not_make_a_silent_device_wait_longer) {
  QueueScript one = Ahead(0, 0);
  QueueScript other = Ahead(1, 0);
  one.command = microseconds(500);
  one.wait = other.wait = Wait::kGang;
  one.target = 1;
  const QueueScript urgent{.process = 2,
                           .priority = 5,
                           .style = Style::kPeriodic,
                           .command = milliseconds(2),
                           .pause = milliseconds(20),
                           .end = microseconds(200016),
                           .wait = Wait::kHidden,
                           .target = 1};
  ExpectKept({.processes = {kLevel3, kLevel3, {.level = 3, .call = microseconds(100)}},
              .queues = {one, other, urgent},
              .length = milliseconds(312),
              .survivor = 2});
}

TEST(LivenessHistories, a_window_that_stands_still_does_not_keep_out_a_more_urgent_one_of_another_device) {
  QueueScript held = Ahead(0, 5);
  QueueScript long_command = Ahead(0, 5);
  QueueScript rival = Ahead(1, 10);
  QueueScript third = Ahead(2, 0);
  held.device = long_command.device = rival.device = third.device = 1;
  long_command.long_task = 1;
  long_command.long_command = milliseconds(3000);
  rival.start = milliseconds(97);
  const QueueScript waiter{.process = 0,
                           .priority = 10,
                           .command = milliseconds(2),
                           .pause = milliseconds(50),
                           .wait = Wait::kHidden};
  ExpectKept({.processes = {kLevel1, kLevel1, kLevel1},
              .queues = {held, waiter, long_command, rival, third},
              .length = milliseconds(436)});
}

TEST(LivenessHistories, holds_on_a_third_device_do_not_make_a_wait_across_devices_longer) {
  QueueScript elsewhere = Ahead(0, 0);
  elsewhere.device = 2;
  const QueueScript pauses{.process = 0,
                           .device = 2,
                           .priority = 10,
                           .command = milliseconds(10),
                           .commands = 3,
                           .pause = milliseconds(10)};
  QueueScript held = Ahead(1, 0);
  QueueScript waiter = Ahead(2, 10);
  waiter.wait = Wait::kHidden;
  waiter.target = 2;
  const QueueScript urgent{.process = 3, .device = 1, .priority = 10, .command = milliseconds(2)};
  held.device = 1;
  ExpectKept({.processes = {kLevel1, kLevel1, kLevel1, kLevel1},
              .queues = {elsewhere, pauses, held, waiter, urgent},
              .length = milliseconds(355),
              .survivor = 1});
}

TEST(LivenessHistories, those_that_were_lent_a_device_give_it_on_in_the_order_in_which_they_had_it) {
  const QueueScript urgent{
      .process = 1, .priority = 10, .command = microseconds(500), .pause = milliseconds(150)};
  const QueueScript periodic{
      .process = 3, .style = Style::kPeriodic, .command = milliseconds(5), .pause = milliseconds(20)};
  ExpectKept({.processes = {{.level = 3, .reaction = microseconds(300), .call = microseconds(100)},
                            {.level = 3, .reaction = microseconds(300)},
                            {.level = 3, .reaction = microseconds(20)},
                            kLevel3},
              .queues = {Ahead(0, 0), urgent, Ahead(2, -5), periodic},
              .length = milliseconds(142)});
}

TEST(LivenessHistories, progress_that_nobody_asked_for_does_not_make_a_silent_device_wait_longer) {
  QueueScript ahead = Ahead(0, 0);
  QueueScript waiter = Ahead(0, 0);
  QueueScript slow = Ahead(0, 0);
  ahead.device = slow.device = 2;
  waiter.start = milliseconds(204);
  waiter.wait = Wait::kHidden;
  slow.command = milliseconds(30);
  const QueueScript frequent{.process = 1,
                             .device = 2,
                             .priority = 5,
                             .command = microseconds(20),
                             .commands = 100,
                             .pause = milliseconds(1)};
  const QueueScript waits_there{.process = 2,
                                .device = 2,
                                .priority = 5,
                                .style = Style::kPeriodic,
                                .command = microseconds(20),
                                .commands = 100,
                                .pause = milliseconds(10),
                                .wait = Wait::kHidden,
                                .target = 1};
  const QueueScript waits_here{.process = 3,
                               .priority = 5,
                               .style = Style::kPeriodic,
                               .command = milliseconds(2),
                               .commands = 2,
                               .pause = milliseconds(150),
                               .wait = Wait::kKnown,
                               .target = 2,
                               .every = 2};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3, kLevel3},
              .queues = {ahead, waiter, slow, frequent, Ahead(1, 0), waits_there, waits_here},
              .length = milliseconds(505)});
}

TEST(LivenessHistories, a_process_that_is_off_the_device_for_two_turns_is_not_waited_for_that_long) {
  QueueScript short_tasks{.process = 0, .device = 2, .command = microseconds(20), .pause = milliseconds(10)};
  QueueScript tasks{.process = 1,
                    .device = 2,
                    .priority = -5,
                    .command = milliseconds(2),
                    .pause = milliseconds(50),
                    .start = milliseconds(16)};
  QueueScript ends = Ahead(2, 0);
  ends.end = milliseconds(40);
  QueueScript needed = Ahead(3, -5);
  needed.command = QueueScript{}.command;
  QueueScript busy = Ahead(4, -5);
  busy.device = 2;
  QueueScript waiter = Ahead(5, -5);
  waiter.wait = Wait::kHidden;
  waiter.target = 3;
  QueueScript elsewhere = Ahead(5, 0);
  elsewhere.device = 1;
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3, kLevel3, kLevel3, kLevel3},
              .queues = {short_tasks, tasks, ends, needed, busy, waiter, elsewhere, Ahead(5, -5)},
              .length = milliseconds(164),
              .survivor = 4,
              .survivor_works = false});
}

TEST(LivenessHistories, a_hold_that_begins_on_one_device_does_not_make_a_longer_one_elsewhere_forgotten) {
  constexpr ProcessScript kTimesOut{.level = 3, .fault = Fault::kTimedOut};
  QueueScript held = Ahead(0, 0);
  held.device = 2;
  const QueueScript needed{.process = 1, .command = milliseconds(2), .wait = Wait::kGang, .target = 4};
  const QueueScript tasks{.process = 1,
                          .device = 2,
                          .priority = 10,
                          .command = milliseconds(5),
                          .commands = 3,
                          .pause = milliseconds(20),
                          .wait = Wait::kKnown,
                          .every = 5};
  const QueueScript waiter{.process = 2,
                           .device = 1,
                           .priority = 10,
                           .command = microseconds(500),
                           .wait = Wait::kGang,
                           .target = 1};
  QueueScript busy = Ahead(2, 5);
  busy.device = 2;
  ExpectKept({.processes = {kLevel3, kTimesOut, kLevel3},
              .queues = {held, needed, tasks, Ahead(2, 10), waiter, busy},
              .length = milliseconds(216),
              .survivor = 0,
              .survivor_works = false});
}

TEST(LivenessHistories, an_urgent_queue_that_works_for_a_moment_does_not_make_a_long_hold_forgotten) {
  constexpr ProcessScript kOverruns{.level = 3, .overrun = 1};
  const QueueScript waiter{
      .process = 0, .device = 1, .priority = 5, .command = milliseconds(2), .wait = Wait::kGang, .target = 4};
  const QueueScript short_tasks{
      .process = 0, .device = 1, .command = microseconds(20), .commands = 100, .pause = milliseconds(1)};
  const QueueScript moments{
      .process = 0, .priority = 10, .command = milliseconds(2), .pause = milliseconds(50)};
  const QueueScript needed{.process = 1, .command = milliseconds(2), .wait = Wait::kGang};
  ExpectKept({.processes = {kOverruns, kLevel3},
              .queues = {waiter, short_tasks, moments, Ahead(1, 5), needed},
              .length = milliseconds(250),
              .survivor = 1,
              .survivor_works = false});
}

TEST(LivenessHistories, what_launching_threads_report_after_a_hold_may_have_happened_before_it) {
  QueueScript first = Ahead(0, 0);
  first.command = microseconds(500);
  first.wait = Wait::kGang;
  first.target = 1;
  QueueScript second = Ahead(1, -5);
  second.wait = Wait::kGang;
  const QueueScript urgent{.process = 2,
                           .priority = 5,
                           .style = Style::kPeriodic,
                           .command = milliseconds(2),
                           .pause = milliseconds(150),
                           .start = milliseconds(62),
                           .end = milliseconds(441),
                           .wait = Wait::kHidden,
                           .target = 1};
  ExpectKept({.processes = {kLevel3, kLevel3, kLevel3},
              .queues = {first, second, urgent},
              .length = milliseconds(598),
              .survivor = 0,
              .survivor_works = false});
}

// ---- shares ----

TEST(LivenessHistories, what_a_queue_used_for_another_one_that_waits_for_it_is_no_debt) {
  QueueScript small = Ahead(0, 0);
  QueueScript large = Ahead(1, 0);
  small.device = large.device = 1;
  small.utilization = 10;
  large.utilization = 50;
  QueueScript waiter = Ahead(2, 0);
  waiter.wait = Wait::kKnown;
  waiter.end = milliseconds(258);
  ExpectKept({.policy = kPolicyUtilizationPartition,
              .processes = {kLevel2, kLevel2, kLevel2},
              .queues = {small, large, waiter},
              .length = milliseconds(522),
              .survivor = 2});
}

TEST(LivenessHistories, time_that_slices_alone_have_divided_is_no_debt) {
  const auto share = [](int process, Utilization utilization, Duration start) {
    QueueScript queue = Ahead(process, 0);
    queue.utilization = utilization;
    queue.start = start;
    return queue;
  };
  ExpectKept({.policy = kPolicyUtilizationPartition,
              .processes = {kLevel3, kLevel3, kLevel3, kLevel3},
              .queues = {share(0, 50, milliseconds(128)), share(0, 0, {}), share(0, 50, milliseconds(82)),
                         share(1, 50, {}), share(2, 0, milliseconds(225)), share(3, 10, {})},
              .length = milliseconds(776)});
}

TEST(LivenessHistories, a_window_does_not_pass_while_a_better_claim_keeps_the_others_from_running) {
  QueueScript held = Ahead(0, -5);
  QueueScript spins = Ahead(1, 0);
  spins.wait = Wait::kHidden;
  QueueScript waiter = Ahead(2, 0);
  waiter.wait = Wait::kKnown;
  waiter.target = 1;
  QueueScript urgent{.process = 3,
                     .priority = 10,
                     .style = Style::kPeriodic,
                     .command = milliseconds(5),
                     .commands = 2,
                     .pause = milliseconds(150)};
  held.device = spins.device = urgent.device = 1;
  ExpectKept({.processes = {kLevel2, kLevel2, kLevel2, kLevel2},
              .queues = {held, spins, waiter, urgent},
              .length = milliseconds(243)});
}

// ---- shares ----

TEST(LivenessHistories, a_slice_does_not_begin_while_a_queue_runs_for_another_one_only) {
  QueueScript awaited = Ahead(0, 0);
  awaited.command = microseconds(20);
  QueueScript waiter = Ahead(2, 0);
  waiter.end = milliseconds(549);
  waiter.wait = Wait::kKnown;
  QueueScript one = Ahead(1, 0);
  QueueScript other = Ahead(1, 0);
  awaited.device = one.device = other.device = 1;
  const Event change{
      .at = microseconds(100), .kind = EventKind::kPolicy, .policy = kPolicyUtilizationPartition};
  ExpectKept({.processes = {kLevel2, kLevel2, kLevel2},
              .queues = {awaited, one, other, waiter},
              .events = {change},
              .length = milliseconds(802),
              .survivor = 1});
}

// With a share it has work all the time, though it mostly waits for a queue of another device.
TEST(LivenessHistories, a_queue_without_a_share_waits_for_one_with_a_share_that_waits_elsewhere) {
  QueueScript one{.process = 0, .device = 2, .command = milliseconds(2), .wait = Wait::kGang, .target = 2};
  QueueScript waiter = Ahead(1, 0);
  waiter.command = microseconds(500);
  waiter.wait = Wait::kKnown;
  QueueScript other{.process = 2, .device = 2, .command = milliseconds(10), .wait = Wait::kGang};
  QueueScript awaited = Ahead(2, 0);
  QueueScript spins = Ahead(2, 0);
  spins.wait = Wait::kHidden;
  spins.target = 3;
  waiter.device = awaited.device = 1;
  awaited.utilization = spins.utilization = 0;
  ExpectKept({.policy = kPolicyUtilizationPartition,
              .processes = {kLevel2, kLevel2, kLevel2},
              .queues = {one, waiter, other, awaited, spins},
              .length = milliseconds(233),
              .survivor = 2});
}

// It is charged for what the device has of it while it is held.
TEST(LivenessHistories, a_queue_whose_command_spun_while_it_was_held_owes_that_time) {
  QueueScript awaited = Ahead(0, 0);
  awaited.utilization = 0;
  QueueScript spins = Ahead(0, 0);
  spins.utilization = 10;
  spins.commands = 4;
  spins.wait = Wait::kHidden;
  spins.every = 2;
  QueueScript other = Ahead(1, 0);
  other.command = milliseconds(30);
  other.commands = 2;
  other.long_task = 2;
  other.long_command = milliseconds(50);
  ExpectKept({.policy = kPolicyUtilizationPartition,
              .processes = {kLevel1, kLevel1},
              .queues = {awaited, spins, other},
              .length = milliseconds(612)});
}

// ---- limits ----

TEST(LivenessHistories, a_process_works_though_its_limit_is_over_before_it_is_on_the_device) {
  QueueScript limited = Ahead(0, 0);
  limited.limit_us = 1000;
  QueueScript waiter = Ahead(1, 0);
  waiter.limit_us = 8000;
  waiter.wait = Wait::kHidden;
  QueueScript guaranteed = Ahead(2, 0);
  guaranteed.guarantee_us = guaranteed.limit_us = 3000;
  guaranteed.wait = Wait::kHidden;
  guaranteed.target = 2;
  ExpectKept({.policy = kPolicyReservation,
              .processes = {{.level = 3, .reaction = microseconds(20), .call = microseconds(100)},
                            kLevel3,
                            {.level = 3, .reaction = microseconds(300), .call = microseconds(600)}},
              .queues = {Ahead(0, 0), limited, Ahead(0, 0), waiter, guaranteed},
              .length = milliseconds(142),
              .survivor = 2});
}

TEST(LivenessHistories, queues_of_a_process_that_follow_each_other_have_one_turn_within_its_limit) {
  QueueScript second = Ahead(0, 0);
  second.start = milliseconds(108);
  second.wait = Wait::kGang;
  second.target = 2;
  QueueScript first{.process = 0,
                    .guarantee_us = 1000,
                    .limit_us = 1000,
                    .command = microseconds(500),
                    .pause = milliseconds(20),
                    .start = milliseconds(84)};
  QueueScript partner = Ahead(1, 0);
  partner.limit_us = 3000;
  partner.start = microseconds(104'397);
  partner.wait = Wait::kGang;
  QueueScript other{.process = 2, .command = milliseconds(2), .pause = milliseconds(150)};
  ExpectKept({.policy = kPolicyReservation,
              .processes = {kLevel3, kLevel3, kLevel3},
              .queues = {second, first, partner, other},
              .length = milliseconds(112)});
}

TEST(LivenessHistories, a_queue_that_its_own_limit_holds_has_got_everything_back) {
  QueueScript here = Ahead(0, 0);
  here.limit_us = 1000;
  QueueScript there = Ahead(0, 0);
  there.device = 1;
  there.limit_us = 3000;
  ExpectKept({.policy = kPolicyReservation,
              .processes = {kLevel3, kLevel3},
              .queues = {here, there, Ahead(1, 0)},
              .length = milliseconds(21),
              .survivor = 0,
              .survivor_works = true});
}

// ---- other policies ----

TEST(LivenessHistories, a_quantum_that_two_queues_use_up_together_ends) {
  QueueScript waiter = Ahead(1, 0);
  waiter.commands = 3;
  waiter.wait = Wait::kKnown;
  waiter.every = 2;
  ExpectKept({.policy = kPolicyMultiLevelFeedbackQueue,
              .processes = {kLevel3, kLevel3},
              .queues = {Ahead(0, 0), waiter},
              .length = milliseconds(22),
              .survivor = 0,
              .survivor_works = false});
}

}  // namespace
}  // namespace xsched::sched::sim
