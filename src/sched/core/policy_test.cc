// What holds for every policy of this build, and for the state that is kept for them.
#include "sched/core/policy.h"

#include <gtest/gtest.h>

#include <cctype>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sched/core/scheduler.h"
#include "sched/core/views.h"
#include "sched/testing/policy_device.h"
#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Policies, are_found_by_type_and_by_name_in_any_case) {
  const Policy* hpf = FindPolicy(kPolicyHighestPriorityFirst);
  const Policy* up = FindPolicy(kPolicyUtilizationPartition);
  ASSERT_TRUE(hpf != nullptr && up != nullptr);
  EXPECT_EQ(hpf->type(), kPolicyHighestPriorityFirst);
  EXPECT_EQ(FindPolicyByName("hpf"), hpf);
  EXPECT_EQ(FindPolicyByName("UP"), up);
  EXPECT_EQ(FindPolicyByName("XYZ"), nullptr);
  EXPECT_EQ(up->type(), kPolicyUtilizationPartition);
  EXPECT_EQ(FindPolicy(kPolicyUnknown), nullptr);
  EXPECT_STREQ(PolicyName(kPolicyKEarliestDeadlineFirst), "KEDF");
  EXPECT_STREQ(PolicyName(static_cast<XPolicyType>(999)), "?");
}

TEST(Policies, have_types_names_and_summaries_of_their_own) {
  std::set<XPolicyType> types;
  std::set<std::string> names;
  std::set<std::string> summaries;
  for (PolicyGetter policy : Policies()) {
    const PolicyInfo& info = policy().info();
    const std::string name = info.name;
    EXPECT_TRUE(types.insert(info.type).second) << name << ": another policy has its type";
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(summaries.insert(info.summary).second) << name;
    EXPECT_NE(info.type, kPolicyUnknown) << name;
    ASSERT_FALSE(name.empty());
    for (char c : name)
      EXPECT_TRUE(std::isupper(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)))
          << name;
    EXPECT_TRUE(info.claim != ClaimBy::kPriority || info.hints.priority)
        << name << " does not read priorities";
    EXPECT_TRUE(info.claim != ClaimBy::kShare || info.hints.utilization) << name << " does not read shares";
    EXPECT_EQ(std::string(info.summary).find('\n'), std::string::npos) << name;
    EXPECT_NE(info.summary[0], '\0') << name;
  }
}

// With any hints.
TEST(Policies, decide_the_same_from_the_same_input_and_let_some_queue_run) {
  for (PolicyGetter policy : Policies()) {
    std::mt19937 random(1);
    auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int round = 0; round < 200; ++round) {
      auto hints = [&] {
        return Hints{.priority = below(5) - 2,
                     .utilization = below(5) * 25,
                     .deadline_us = below(3) * 1000,
                     .weight = 1 + below(300)};
      };
      const Hints given[4] = {hints(), hints(), hints(), hints()};
      auto make = [&](uint64_t id) { return View(id, given[id - 1], ProcessId{id % 2 + 1}); };
      PolicyDevice one = {make(1), make(2), make(3), make(4)};
      PolicyDevice two = {make(1), make(2), make(3), make(4)};
      TimePoint now = PolicyDevice::kNow;
      for (int step = 0; step < 20; ++step) {
        now += microseconds(below(4000));
        EXPECT_EQ(one.Decide(policy(), now), two.Decide(policy(), now)) << policy().info().name;
        int running = 0;
        for (size_t i = 0; i < 4; ++i) {
          ASSERT_EQ(one[i].run, two[i].run) << policy().info().name;
          running += one[i].run;
          for (PolicyDevice* device : {&one, &two}) {
            QueueView& queue = (*device)[i];
            if (queue.run) queue.service += microseconds(500);
            if (queue.run && !queue.running) queue.running_since = now;
            queue.running = queue.run;
            queue.newly_ready = false;
          }
        }
        ASSERT_GT(running, 0) << policy().info().name << ": the device stands still";
      }
    }
  }
}

// ---- their state ----

struct Decisions {
  int count;
};

// A policy that lets every queue run, counts its decisions, and reports the counts.
class Counting final : public PolicyWithState<Decisions, Decisions, Decisions> {
 public:
  struct Counts {
    QueueId queue;
    int of_queue;
    int of_process;
    int of_device;
    bool operator==(const Counts&) const = default;
  };

  explicit Counting(std::vector<Counts>& last)
      : PolicyWithState({.type = kPolicyUnknown, .name = "COUNTING", .summary = "", .hints = {}}),
        last_(last) {}

  TimePoint Decide(const DeviceView& device) const override {
    last_.clear();
    ++StateOf(device).count;
    for (QueueView& queue : device.ready) {
      queue.run = true;
      last_.push_back(
          {queue.id, ++StateOf(queue).count, ++ProcessStateOf(queue).count, StateOf(device).count});
    }
    return kNever;
  }
  bool CanHold(const Hints&, const Hints&) const override { return false; }

 private:
  std::vector<Counts>& last_;
};

void PrintTo(const Counting::Counts& counts, std::ostream* out) {
  *out << static_cast<uint64_t>(counts.queue) << ": " << counts.of_queue << ' ' << counts.of_process << ' '
       << counts.of_device;
}

// ---- steady policies ----

// Two devices with the same queues: `often` is asked more often.
class SteadyPolicy {
 public:
  SteadyPolicy(const Policy& policy, unsigned seed) : policy_(policy), random_(seed) {}

  void Check() {
    PolicyDevice often{Queue(1, 0), Queue(2, 1), Queue(3, 2), Queue(4, 3)};
    PolicyDevice seldom{Queue(1, 0), Queue(2, 1), Queue(3, 2), Queue(4, 3)};
    TimePoint now = PolicyDevice::kNow;
    for (int i = 0; i < 200; ++i) {
      const TimePoint next = Decide(seldom, now);
      ASSERT_EQ(Decide(often, now), next) << policy_.info().name << ", " << i;
      for (size_t j = 0; j < often.ready().size(); ++j)
        ASSERT_EQ(often[j].run, seldom[j].run) << policy_.info().name << ", " << i;
      const TimePoint end = std::min(next, now + microseconds(1 + Below(20'000)));
      Pass(seldom, end - now);
      const Duration part = (end - now) / 4;
      for (int j = 0; j < 3; ++j) {
        Pass(often, part);
        EXPECT_EQ(Decide(often, now + part * (j + 1)), next) << policy_.info().name << ", " << i;
      }
      Pass(often, end - now - part * 3);
      now = end;
      if (now == next) continue;
      const size_t changed = Below(4);
      for (PolicyDevice* device : {&often, &seldom}) {
        (*device)[changed].ready_since = (*device)[changed].finished_at = now;
        (*device)[changed].newly_ready = true;
      }
    }
  }

 private:
  size_t Below(size_t count) { return random_() % count; }

  static QueueView Queue(uint64_t id, int number) {
    return View(id, {.priority = number / 2,
                     .deadline_us = number == 3 ? NO_DEADLINE : 3000 * (number + 1),
                     .laxity_us = number == 3 ? NO_LAXITY : 2000 * (number + 1),
                     .lax_priority = number,
                     .critical_priority = 5 - number,
                     .floor = 10 * (number + 1),
                     .latency_target_us = number % 2 == 0 ? NO_LATENCY_TARGET : 4000 * number});
  }
  TimePoint Decide(PolicyDevice& device, TimePoint now) const {
    const TimePoint next = device.Decide(policy_, now);
    for (QueueView& queue : device.ready()) {
      if (queue.run && !queue.running) queue.running_since = now;
      queue.running = queue.run;
      queue.newly_ready = false;
    }
    return next;
  }
  static void Pass(PolicyDevice& device, Duration time) {
    for (QueueView& queue : device.ready()) {
      if (queue.running) queue.service += time;
    }
  }

  const Policy& policy_;
  std::mt19937 random_;
};

TEST(Policies, that_are_steady_decide_the_same_however_often_they_are_asked) {
  int tried = 0;
  for (PolicyGetter get : Policies()) {
    if (!get().info().steady) continue;
    ++tried;
    for (unsigned seed = 0; seed < 20; ++seed) SteadyPolicy(get(), seed).Check();
  }
  EXPECT_GT(tried, 0);
}

TEST(CombinedHints, have_the_priorities_of_a_laxity_only_of_queues_that_have_one) {
  const Hints without = {.lax_priority = 200, .critical_priority = 255};
  const Hints one = {.laxity_us = 3000, .lax_priority = -5, .critical_priority = 1};
  const Hints other = {.laxity_us = 2000, .lax_priority = -7, .critical_priority = 2};
  for (const Hints& both : {CombineHints(without, one), CombineHints(one, without)}) {
    EXPECT_EQ(both.laxity_us, 3000);
    EXPECT_EQ(both.lax_priority, -5);
    EXPECT_EQ(both.critical_priority, 1);
  }
  EXPECT_EQ(CombineHints(without, without).laxity_us, NO_LAXITY);
  const Hints both = CombineHints(one, other);
  EXPECT_EQ(both.laxity_us, 2000);
  EXPECT_EQ(both.lax_priority, -5);
  EXPECT_EQ(both.critical_priority, 2);
}

class PolicyStateTest : public testing::Test {
 protected:
  PolicyStateTest() { scheduler_.SetPolicy(counting_); }

  void Add(QueueId queue, ProcessId process, DeviceId device) {
    scheduler_.AddQueue(queue, process, device, Hints{}, now_);
    scheduler_.Progress(queue, 1, 0, now_);
  }
  // Changes one queue, and decides.
  const std::vector<Counting::Counts>& Decide(QueueId queue) {
    now_ += milliseconds(1);
    scheduler_.SetHints(queue, {.priority = ++priority_});
    scheduler_.Decide(now_, sink_);
    return last_;
  }

  static constexpr QueueId kOne{1};
  static constexpr QueueId kTwo{2};
  static constexpr QueueId kThree{3};
  static constexpr ProcessId kProcess{1};
  static constexpr ProcessId kOtherProcess{2};
  static constexpr DeviceId kDevice{1};
  static constexpr DeviceId kOtherDevice{2};

  using Seen = std::vector<Counting::Counts>;
  std::vector<Counting::Counts> last_;
  Counting counting_{last_};
  Scheduler scheduler_{SchedulerConfig{}};
  Recorder sink_;
  TimePoint now_{milliseconds(1)};
  Priority priority_ = 0;
};

TEST_F(PolicyStateTest, is_kept_for_each_queue_each_process_and_the_device) {
  Add(kOne, kProcess, kDevice);
  Add(kTwo, kProcess, kDevice);
  Add(kThree, kOtherProcess, kDevice);
  EXPECT_EQ(Decide(kOne), (Seen{{kOne, 1, 1, 1}, {kTwo, 1, 2, 1}, {kThree, 1, 1, 1}}));
  EXPECT_EQ(Decide(kOne), (Seen{{kOne, 2, 3, 2}, {kTwo, 2, 4, 2}, {kThree, 2, 2, 2}}));
}

TEST_F(PolicyStateTest, begins_as_zero_for_what_is_new) {
  Add(kOne, kProcess, kDevice);
  Decide(kOne);
  Add(kTwo, kProcess, kDevice);
  EXPECT_EQ(Decide(kOne), (Seen{{kOne, 2, 2, 2}, {kTwo, 1, 3, 2}}));
  Add(kThree, kProcess, kOtherDevice);
  EXPECT_EQ(Decide(kThree), (Seen{{kThree, 1, 1, 1}})) << "of the process on this device, and of this device";
}

TEST_F(PolicyStateTest, begins_anew_after_a_change_of_policy) {
  Add(kOne, kProcess, kDevice);
  Decide(kOne);
  Decide(kOne);
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  Decide(kOne);
  scheduler_.SetPolicy(counting_);
  EXPECT_EQ(Decide(kOne), (Seen{{kOne, 1, 1, 1}}));
}

}  // namespace
}  // namespace xsched::sched
