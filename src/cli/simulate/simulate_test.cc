// xsched simulate: the loads that come with XSched show what their policies are for, and the search finds it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/locations.h"
#include "cli/simulate/load_file.h"
#include "cli/simulate/outcome.h"
#include "cli/simulate/page.h"
#include "cli/simulate/report.h"
#include "cli/simulate/target.h"

namespace xsched::cli {
namespace {

constexpr Duration kWarmUp = std::chrono::seconds(1);

sched::sim::Load ReadText(const std::string& text, std::optional<Duration> length = std::nullopt) {
  std::istringstream file(text);
  LoadReader reader;
  reader.Read(file, "FILE");
  return reader.Finish(length, std::nullopt);
}

sched::sim::Load Shipped(const std::string& name) {
  const std::string path = FindShared("examples/loads/" + name + ".xrec").value();
  std::ifstream file(path);
  LoadReader reader;
  reader.Read(file, path);
  return reader.Finish(std::nullopt, std::nullopt);
}

Outcome With(const sched::sim::Load& load, const char* policy) {
  return Predict(load, SchemeByName(policy), kWarmUp);
}

TEST(Loads, a_fixed_priority_keeps_the_latency_of_a_task_that_needs_a_fifth_of_the_device) {
  const sched::sim::Load load = Shipped("priority");
  const Outcome native = With(load, "native");
  const Outcome scheduled = With(load, "HPF");
  EXPECT_LE(scheduled.Find("serve")->p99_ms, 4.012 * 1.1);  // alone
  EXPECT_GE(native.Find("serve")->p99_ms, scheduled.Find("serve")->p99_ms * 2);
  EXPECT_GE(scheduled.Find("train")->share, 0.8 * 0.97);
}

TEST(Loads, shares_are_75_to_25_at_no_cost) {
  const sched::sim::Load load = Shipped("partition");
  const Outcome shared = With(load, "UP");
  const double total = shared.Find("first")->share + shared.Find("second")->share;
  EXPECT_NEAR(shared.Find("first")->share / total, 0.75, 0.01);
  const Outcome native = With(load, "native");
  EXPECT_GE(total, 0.98 * (native.Find("first")->share + native.Find("second")->share));
}

// A process that LAX holds used up its slices at closed gates: the other one did half of what it can.
TEST(Loads, one_that_laxity_lets_run_alone_has_the_whole_of_a_device_with_time_slices) {
  sched::sim::Load load = Shipped("partition");
  load.queues[0].hints = {.laxity_us = 1000, .lax_priority = 0, .critical_priority = 2};
  load.queues[1].hints = {.priority = 1};
  const Outcome native = With(load, "native");
  const Outcome scheduled = With(load, "LAX");
  const auto total = [](const Outcome& outcome) {
    return outcome.Find("first")->share + outcome.Find("second")->share;
  };
  EXPECT_GE(scheduled.Find("first")->share, 0.95) << "it is critical all the time";
  EXPECT_GE(total(scheduled), 0.98 * total(native));
}

TEST(Loads, weights_are_kept_among_those_that_always_have_work_and_a_sleeper_gets_what_it_is_owed) {
  const sched::sim::Load load = Shipped("weights");
  const Outcome shared = With(load, "EEVDF");
  // While both have commands on the device, the scheduler can only estimate how much time each of them gets.
  EXPECT_NEAR(shared.Find("large")->share, 0.75 * 0.95, 0.012);
  EXPECT_NEAR(shared.Find("small")->share, 0.25 * 0.95, 0.01);
  const Outcome native = With(load, "native");
  EXPECT_NEAR(native.Find("large")->share / native.Find("small")->share, 1, 0.02);
  EXPECT_GE(shared.Find("large")->share + shared.Find("small")->share + shared.Find("sleeper")->share, 0.97);
  EXPECT_NEAR(shared.Find("sleeper")->share, 0.05, 0.002)
      << "it needs less than its share, and gets all of it";
}

TEST(Loads, a_reservation_keeps_its_guarantee_and_its_limit) {
  const Outcome outcome = With(Shipped("reservation"), "RESERVE");
  // Of the 70 % that are left over, one gets no more than its 20 %, and the other two share 50 %.
  EXPECT_NEAR(outcome.Find("guaranteed")->share, 0.55, 0.015);
  EXPECT_NEAR(outcome.Find("limited")->share, 0.2, 0.01);
  EXPECT_NEAR(outcome.Find("other")->share, 0.25, 0.015);
}

TEST(Loads, a_latency_target_is_met_and_the_other_program_gets_more_than_by_priority) {
  const sched::sim::Load load = Shipped("slo");
  const Outcome by_target = With(load, "SLO");
  EXPECT_LE(by_target.Find("serve")->p99_ms, 20);
  const Outcome by_priority = With(load, "HPF");
  EXPECT_GE(by_target.Find("train")->share, by_priority.Find("train")->share + 0.02);
}

TEST(Loads, laxity_makes_the_frames_of_a_conference_nine_times_as_fast_as_in_order) {
  const sched::sim::Load load = Shipped("conference");
  const Outcome in_order = With(load, "FIFO");
  const Outcome lax = With(load, "LAX");
  EXPECT_GE(in_order.Find("conference")->p99_ms, 9 * lax.Find("conference")->p99_ms);
  EXPECT_EQ(lax.Find("conference")->missed, 0u);
  EXPECT_LE(lax.Find("speech")->p99_ms, 1.1 * in_order.Find("speech")->p99_ms);
}

TEST(Loads, earliest_deadlines_first_is_better_than_in_order_at_1000_requests_a_second) {
  const sched::sim::Load load = Shipped("deadlines");
  const Outcome in_order = With(load, "FIFO");
  const Outcome deadlines = With(load, "KEDF");
  size_t requests = 0;
  uint64_t missed_in_order = 0;
  for (const char* kind : {"small", "medium", "large"}) {
    requests += deadlines.Find(kind)->tasks;
    missed_in_order += in_order.Find(kind)->missed;
    EXPECT_EQ(deadlines.Find(kind)->missed, 0u) << kind;
  }
  EXPECT_NEAR(static_cast<double>(requests) / 29, 1000, 20);
  EXPECT_GT(missed_in_order, 100u);
  EXPECT_GE(in_order.Find("small")->p99_ms, 1.3 * deadlines.Find("small")->p99_ms);
  EXPECT_GE(in_order.Find("medium")->p99_ms, 1.3 * deadlines.Find("medium")->p99_ms);
}

TEST(Loads, an_urgent_pipeline_is_fast_on_each_of_two_devices) {
  const sched::sim::Load load = Shipped("devices");
  const Outcome in_order = With(load, "FIFO");
  const Outcome scheduled = With(load, "HPF");
  EXPECT_GE(in_order.Find("classify")->p99_ms, 9 * scheduled.Find("classify")->p99_ms);
  EXPECT_LE(scheduled.Find("detect")->p99_ms, in_order.Find("detect")->p99_ms);
  EXPECT_GE(scheduled.Find("train")->share, 0.9);
  EXPECT_GE(scheduled.Find("speech")->share, 0.85);
}

TEST(Target, it_is_read_with_its_unit) {
  const Target target = ParseTarget("serve p99 < 5 ms");
  EXPECT_EQ(target.queue, "serve");
  EXPECT_EQ(target.figure, &QueueOutcome::p99_ms);
  EXPECT_DOUBLE_EQ(target.below_ms, 5);
  EXPECT_DOUBLE_EQ(ParseTarget("a p50<250us").below_ms, 0.25);
  EXPECT_THROW(ParseTarget("serve p98 < 5 ms"), CommandError);
  EXPECT_THROW(ParseTarget("serve p99 < 5"), CommandError);
  EXPECT_THROW(ParseTarget(""), CommandError);
}

TEST(Target, a_name_may_have_spaces) { EXPECT_EQ(ParseTarget(" program 1 max < 5 ms").queue, "program 1"); }

TEST(Target, it_is_from_a_microsecond_to_a_year) {
  EXPECT_THROW(ParseTarget("serve p99 < 0.0001 ms"), CommandError);
  EXPECT_THROW(ParseTarget("serve p99 < 99999999999999 s"), CommandError);
  EXPECT_DOUBLE_EQ(ParseTarget("serve p99 < 31556952 s").below_ms, 31556952e3);
}

TEST(Target, a_policy_under_which_no_task_ends_is_not_the_nearest) {
  sched::sim::Load load = Shipped("priority");
  load.queues[0].hints.priority = -1;  // `train` always has work
  const Target target = ParseTarget("serve p99 < 1 us");
  const std::vector<Outcome> outcomes =
      Search(load, {SchemeByName("HPF"), SchemeByName("native")}, target, "train", kWarmUp);
  EXPECT_TRUE(target.HasTasks(outcomes.front()));
  EXPECT_EQ(outcomes.back().scheme.name, "HPF");
  EXPECT_FALSE(target.HasTasks(outcomes.back()));
}

TEST(Target, the_search_finds_a_hint_that_the_load_does_not_have) {
  sched::sim::Load load = Shipped("priority");
  for (auto& queue : load.queues) queue.hints.priority = 0;
  const Target target = ParseTarget("serve p99 < 5 ms");
  const std::vector<Scheme> schemes = {SchemeByName("native"), SchemeByName("HPF"), SchemeByName("UP")};
  const std::vector<Outcome> outcomes = Search(load, schemes, target, "train", kWarmUp);
  ASSERT_TRUE(target.IsMet(outcomes[0]));
  EXPECT_EQ(outcomes[0].scheme.name, "HPF, priority 1");
  EXPECT_FALSE(target.IsMet(outcomes.back()));
  EXPECT_THROW(Search(load, schemes, target, "nobody", kWarmUp), CommandError);
}

// From 1 s on, `urgent` always has work. Under HPF, `serve` ends 50 tasks in time before that, and none
// later.
TEST(Target, a_queue_that_starves_does_not_meet_it) {
  const sched::sim::Load load = ReadText(
      R"({"xsched_record":1}
{"t":0,"device":{"id":0,"name":"D","level":2}}
{"t":0,"process":{"id":1,"name":"serve"}}
{"t":0,"process":{"id":2,"name":"urgent"}}
{"t":0,"queue":{"id":1,"process":1,"device":0,"hints":{"deadline_us":10000}}}
{"t":0,"queue":{"id":2,"process":2,"device":0,"hints":{"priority":5}}}
{"t":0,"load":{"queue":1,"commands":5,"command_ns":200000,"period_ns":20000000,"until_ns":10000000000}}
{"t":1000000000,"load":{"queue":2,"command_ns":1000000}}
)");
  const Outcome outcome = Predict(load, SchemeByName("HPF"), Duration::zero());
  const QueueOutcome& serve = *outcome.Find("serve");
  EXPECT_EQ(serve.tasks, 50u);
  EXPECT_EQ(serve.missed, 450u);
  EXPECT_GT(serve.p99_ms, 8000);
  EXPECT_FALSE(ParseTarget("serve p99 < 2 ms").IsMet(outcome));
}

TEST(Target, the_search_tries_it_as_a_latency_target) {
  sched::sim::Load load = Shipped("slo");
  for (auto& queue : load.queues) queue.hints = {};
  const Target target = ParseTarget("serve p99 < 20 ms");
  const std::vector<Outcome> outcomes = Search(load, {SchemeByName("SLO")}, target, "train", kWarmUp);
  const auto found = std::ranges::find(outcomes, "SLO, latency target 20000 µs",
                                       [](const Outcome& outcome) { return outcome.scheme.name; });
  ASSERT_NE(found, outcomes.end());
  EXPECT_TRUE(target.IsMet(*found));
}

// Programs give their queues hints after they have made them.
const std::string kHintedLater = R"({"xsched_record":1}
{"t":0,"device":{"id":0,"name":"D","level":1}}
{"t":0,"process":{"id":1,"name":"serve"}}
{"t":0,"process":{"id":2,"name":"train"}}
{"t":0,"queue":{"id":1,"process":1,"device":0}}
{"t":0,"queue":{"id":2,"process":2,"device":0}}
{"t":1000,"queue":{"id":1,"hints":{"deadline_us":2000,"priority":5}}}
{"t":1000000,"load":{"queue":1,"command_ns":1000000,"commands":5,"period_ns":20000000}}
{"t":0,"load":{"queue":2,"command_ns":1000000}}
)";

TEST(Hints, that_a_queue_gets_later_count_as_those_of_its_first_line_do) {
  const sched::sim::Load load = ReadText(kHintedLater, std::chrono::seconds(5));
  for (const char* policy : {"native", "HPF"}) {
    const QueueOutcome serve = *With(load, policy).Find("serve");
    EXPECT_TRUE(serve.has_deadline);
    EXPECT_EQ(serve.tasks, 200u);
    EXPECT_EQ(serve.missed, 200u) << "5 ms of work, due in 2 ms: " << policy;
  }
}

TEST(Target, the_search_begins_with_the_hints_that_the_load_has_later) {
  const sched::sim::Load load = ReadText(kHintedLater, std::chrono::seconds(5));
  const Target target = ParseTarget("serve p99 < 6 ms");
  const std::vector<Outcome> outcomes =
      Search(load, {SchemeByName("HPF"), SchemeByName("EEVDF")}, target, "train", kWarmUp);
  const auto find = [&](const std::string& name) {
    const auto found =
        std::ranges::find(outcomes, name, [](const Outcome& outcome) { return outcome.scheme.name; });
    return found == outcomes.end() ? nullptr : &*found;
  };
  ASSERT_NE(find("HPF"), nullptr);
  const std::vector<Outcome> in_search = {*find("HPF")};
  const std::vector<Outcome> alone = {With(load, "HPF")};
  EXPECT_EQ(OutcomesJson(in_search), OutcomesJson(alone));
  EXPECT_EQ(find("HPF, priority 1"), nullptr) << "it has 5 already";
  ASSERT_NE(find("EEVDF, weight 400"), nullptr);
  const QueueOutcome& serve = *find("EEVDF, weight 400")->Find("serve");
  EXPECT_GT(serve.tasks, 190u);
  EXPECT_EQ(serve.missed, serve.tasks) << "it keeps its deadline";
}

TEST(Target, k_and_what_a_policy_decides_about_are_tried) {
  sched::sim::Load load = Shipped("devices");
  const Target target = ParseTarget("classify p99 < 5 ms");
  const auto has = [&](const char* policy, const std::string& name) {
    const std::vector<Candidate> candidates = Candidates(load, SchemeByName(policy), target);
    return std::ranges::any_of(candidates,
                               [&](const Candidate& candidate) { return candidate.scheme.name == name; });
  };
  EXPECT_TRUE(has("KEDF", "KEDF, deadline 5000 µs, k 2"));
  EXPECT_FALSE(has("KEDF", "KEDF, k 4")) << "the load has four queues";
  for (const Candidate& candidate : Candidates(load, WithAtATime(SchemeByName("KEDF"), 1), target))
    EXPECT_EQ(candidate.scheme.at_a_time, 1u) << "as the user says";
  EXPECT_FALSE(has("HPF", "HPF, k 2")) << "HPF does not count queues";
  EXPECT_FALSE(has("HPF", "HPF:process")) << "on each device, each process has one queue";
  load.queues[1].device = 0;
  EXPECT_TRUE(has("HPF", "HPF:process, priority 11") || has("HPF", "HPF:process"));
  EXPECT_TRUE(has("PUP", "PUP:queue, utilization 50"));
}

TEST(Target, guarantees_are_tried_as_far_as_the_device_can_keep_them) {
  sched::sim::Load load = Shipped("reservation");
  load.queues[0].hints.guarantee_us = 60'000;  // of 100 ms
  const auto guarantees = [&](const char* queue) {
    std::vector<int64_t> found;
    for (const Candidate& candidate :
         Candidates(load, SchemeByName("RESERVE"), ParseTarget(std::string(queue) + " p99 < 20 ms"))) {
      if (candidate.changes == 1 && candidate.scheme.name.find("guarantee") != std::string::npos)
        found.push_back(candidate.scheme.hints[queue == std::string("other") ? 2 : 0].guarantee_us.value());
    }
    return found;
  };
  EXPECT_EQ(guarantees("other"), std::vector<int64_t>({5000})) << "of 20 ms; there are 40 % left";
  EXPECT_EQ(guarantees("guaranteed"), std::vector<int64_t>({5000, 10'000, 15'000}));
}

TEST(Target, chains_of_priorities_and_of_each_policy_that_takes_turns_are_tried) {
  std::vector<std::string> names;
  for (const Scheme& scheme : NaturalChains()) names.push_back(scheme.name);
  EXPECT_NE(std::ranges::find(names, "HPF/EEVDF"), names.end());
  EXPECT_EQ(std::ranges::find(names, "HPF/HPF"), names.end());
}

TEST(Target, the_number_of_runs_has_a_bound_and_those_with_few_changes_come_first) {
  sched::sim::Load load = Shipped("devices");
  load.queues[1].device = 0;  // two queues of a process on one device: each policy is tried about both
  load.length = std::chrono::milliseconds(2);
  std::vector<Scheme> schemes = AllSchemes();
  for (const Scheme& chain : NaturalChains()) schemes.push_back(chain);
  const Target target = ParseTarget("classify p99 < 5 ms");
  const std::vector<Outcome> outcomes = Search(load, schemes, target, "train", Duration::zero());
  EXPECT_EQ(outcomes.size(), kMostCandidates);
  for (const Scheme& scheme : schemes) {
    const bool is_there = std::ranges::any_of(
        outcomes, [&](const Outcome& outcome) { return outcome.scheme.name == scheme.name; });
    EXPECT_TRUE(is_there) << scheme.name;
  }
}

// Two processes that always have work. The first one also has a queue of weight 1000, with a limit, that is
// there from the second second to the fourth.
TEST(Queues, that_come_later_or_are_gone_change_nothing_before_or_after) {
  sched::sim::Load load = ReadText(R"({"xsched_record":1}
{"t":0,"device":{"id":0,"name":"D","level":1}}
{"t":0,"process":{"id":1,"name":"A"}}
{"t":0,"process":{"id":2,"name":"B"}}
{"t":0,"queue":{"id":1,"process":1,"device":0,"name":"A"}}
{"t":0,"queue":{"id":2,"process":2,"device":0,"name":"B"}}
{"t":0,"load":{"queue":1,"command_ns":1000000}}
{"t":0,"load":{"queue":2,"command_ns":1000000}}
{"t":2000000000,"queue":{"id":3,"process":1,"device":0,"name":"idle","hints":{"weight":1000,"limit_us":1000,"period_us":10000}}}
{"t":4000000000,"gone":{"queue":3}}
)",
                                   std::chrono::seconds(6));
  const auto share_between = [&](const char* policy, int from, int until) {
    load.length = std::chrono::seconds(until);
    const Outcome outcome = Predict(load, SchemeByName(policy), std::chrono::seconds(from));
    return outcome.Find("A")->share;
  };
  EXPECT_NEAR(share_between("EEVDF", 0, 2), 0.5, 0.01);
  EXPECT_NEAR(share_between("EEVDF", 2, 4), 10.0 / 11, 0.01);
  EXPECT_NEAR(share_between("EEVDF", 4, 6), 0.5, 0.01);
  // At level 1, RESERVE does not divide commands of 1 ms exactly (docs/policies.md).
  load.devices[0].level = 2;
  for (sched::sim::QueueLoad& queue : load.queues) queue.level = 2;
  EXPECT_NEAR(share_between("RESERVE", 0, 2), 0.5, 0.02);
  EXPECT_NEAR(share_between("RESERVE", 2, 4), 0.1, 0.02);
  EXPECT_GE(share_between("RESERVE", 4, 6), 0.48);
}

TEST(Schemes, k_is_part_of_a_prediction) {
  const sched::sim::Load load = Shipped("deadlines");
  const Scheme one = SchemeByName("KEDF");
  const Scheme four = WithAtATime(one, 4);
  EXPECT_EQ(four.name, "KEDF, k 4");
  EXPECT_NE(Predict(load, four, kWarmUp).Find("small")->p99_ms,
            Predict(load, one, kWarmUp).Find("small")->p99_ms);
  EXPECT_EQ(WithAtATime(SchemeByName("UP"), 4).name, "UP");
}

TEST(Report, each_policy_has_a_row_for_each_queue) {
  const Outcome outcome = With(Shipped("priority"), "native");
  const std::vector<Outcome> outcomes = {outcome};
  const std::string text = OutcomesText(outcomes);
  EXPECT_NE(text.find("native  serve"), std::string::npos);
  const nlohmann::json json = OutcomesJson(outcomes);
  EXPECT_EQ(json[0]["policy"], "native");
  EXPECT_EQ(json[0]["queues"][0]["queue"], "serve");
  EXPECT_DOUBLE_EQ(json[0]["queues"][0]["p99_ms"].get<double>(), outcome.queues[0].p99_ms);
  EXPECT_FALSE(json[0]["queues"][1].contains("p99_ms"));
}

TEST(Report, the_page_escapes_names_and_needs_nothing_from_elsewhere) {
  Outcome outcome = With(Shipped("priority"), "native");
  outcome.queues[0].name = "<script>";
  const std::vector<Outcome> outcomes = {outcome};
  const std::string page = Page(outcomes);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;: how often each latency"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_LT(page.size(), 10'000u);
}

TEST(Schemes, an_unknown_policy_is_named_with_those_that_there_are) {
  EXPECT_EQ(SchemeByName("hpf").name, "HPF");
  EXPECT_FALSE(SchemeByName("Native").policy);
  try {
    SchemeByName("XYZ");
    FAIL();
  } catch (const CommandError& error) {
    EXPECT_NE(std::string(error.what()).find("native"), std::string::npos);
  }
}

}  // namespace
}  // namespace xsched::cli
