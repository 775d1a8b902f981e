// xsched simulate: tenants get their shares, whatever number of processes and queues they have, by the same
// scheduler as in the server.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/simulate/load_file.h"
#include "cli/simulate/outcome.h"
#include "cli/simulate/report.h"

namespace xsched::cli {
namespace {

// A load of programs that always have work, on one device.
class TenantLoad {
 public:
  // `queues`: the weight of each.
  void Add(const std::string& name, const std::string& tenant, const std::vector<int>& queues) {
    AddHinted(name, tenant, "weight", queues);
  }
  // `queues`: the `hint` of each.
  void AddHinted(const std::string& name, const std::string& tenant, const std::string& hint,
                 const std::vector<int>& queues) {
    const int process = ++processes_;
    text_ += fmt::format(R"({{"t":0,"process":{{"id":{},"name":"{}","tenant":"{}"}}}})"
                         "\n",
                         process, name, tenant);
    for (int value : queues) {
      const int queue = ++queues_;
      text_ += fmt::format(R"({{"t":0,"queue":{{"id":{0},"process":{1},"device":0,"hints":{{"{2}":{3}}}}}}})"
                           "\n"
                           R"({{"t":0,"load":{{"queue":{0},"command_ns":20000}}}})"
                           "\n",
                           queue, process, hint, value);
    }
  }
  sched::sim::Load Read(const std::string& rules = "") const {
    std::istringstream input(text_);
    LoadReader reader;
    reader.Read(input, "LOAD");
    sched::sim::Load load = reader.Finish(std::chrono::seconds(2), std::nullopt);
    SetRights(load, *server::ParseTenantRules(rules, "RULES"));
    return load;
  }

 private:
  std::string text_ =
      "{\"xsched_record\":1}\n"
      "{\"t\":0,\"device\":{\"id\":0,\"platform\":\"none\",\"name\":\"D\",\"level\":2}}\n";
  int processes_ = 0;
  int queues_ = 0;
};

Outcome With(const sched::sim::Load& load, const std::string& policy) {
  return Predict(load, SchemeByName(policy), std::chrono::milliseconds(200));
}

// Of what all have together: gates and changes cost something.
double ShareOf(const Outcome& outcome, const std::string& tenant) {
  double all = 0;
  double own = 0;
  for (const TenantOutcome& one : outcome.tenants) {
    all += one.share;
    if (one.name == tenant) own = one.share;
  }
  return own / all;
}

double PartOf(const Outcome& outcome, const std::string& queue, const std::string& of) {
  return outcome.Find(queue)->share / (outcome.Find(queue)->share + outcome.Find(of)->share);
}

class SimulatedTenants : public testing::TestWithParam<const char*> {};

TEST_P(SimulatedTenants, twenty_processes_of_one_tenant_get_what_one_would) {
  const auto share_beside = [](int processes) {
    TenantLoad load;
    load.Add("alone", "one", {100});
    for (int i = 0; i < processes; ++i) load.Add("many", "other", {100});
    return ShareOf(With(load.Read(), GetParam()), "one");
  };
  EXPECT_NEAR(share_beside(1), 0.5, 0.01);
  EXPECT_NEAR(share_beside(20), 0.5, 0.01);
}

TEST_P(SimulatedTenants, have_the_shares_of_the_file_whatever_their_programs_ask_for) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto between = [&random](int low, int high) {
      return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    TenantLoad load;
    std::string rules;
    std::map<std::string, double> weights;
    double all = 0;
    const int tenants = between(2, 4);
    for (int tenant = 0; tenant < tenants; ++tenant) {
      const std::string name = fmt::format("t{}", tenant);
      all += weights[name] = between(20, 400);
      rules +=
          fmt::format("[[tenant]]\nname = '{}'\nusers = [{}]\nweight = {}\n", name, tenant, weights[name]);
      for (int processes = between(1, 6); processes > 0; --processes) {
        std::vector<int> queues;
        for (int i = between(1, 3); i > 0; --i) queues.push_back(between(1, 1000));
        load.Add("p", name, queues);
      }
    }
    const Outcome outcome = With(load.Read(rules), GetParam());
    for (const auto& [name, weight] : weights)
      EXPECT_NEAR(ShareOf(outcome, name), weight / all, 0.02)
          << GetParam() << ", seed " << seed << ", " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SimulatedTenants, testing::Values("EEVDF", "UP:tenant", "EEVDF:tenant/UP"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(TenantsInLoads, share_by_tenant_first_then_by_process_then_by_queue) {
  TenantLoad load;
  load.Add("alone", "one", {100});
  load.Add("heavy", "other", {300});
  load.Add("light", "other", {100});
  EXPECT_NEAR(ShareOf(With(load.Read(), "EEVDF"), "one"), 0.5, 0.01);
  const Outcome outcome = With(load.Read(), "EEVDF");
  EXPECT_NEAR(PartOf(outcome, "heavy", "light"), 0.75, 0.01);
}

TEST(TenantsInLoads, a_priority_that_a_tenant_may_not_claim_holds_nobody_else_and_lowers_its_own) {
  TenantLoad load;
  load.AddHinted("first", "a", "priority", {10});
  load.AddHinted("second", "a", "priority", {5});
  load.AddHinted("other", "b", "priority", {0});
  const Outcome limited = With(load.Read(), "HPF");
  EXPECT_NEAR(PartOf(limited, "first", "other"), 0.5, 0.05) << "both count as 0";
  EXPECT_LT(limited.Find("second")->share, 0.01) << "it counts as -5";
  const Outcome allowed = With(load.Read("[[tenant]]\nname = 'a'\nusers = [1]\nmax_priority = 10\n"), "HPF");
  EXPECT_LT(allowed.Find("other")->share, 0.01);
}

TEST(TenantsInLoads, a_priority_that_is_claimed_for_a_while_lowers_the_tenants_others_so_long) {
  TenantLoad load;
  load.AddHinted("low", "a", "priority", {0});
  load.AddHinted("other", "b", "priority", {0});
  sched::sim::Load read = load.Read();
  read.queues.push_back(read.queues[0]);
  read.queues[2].tasks.clear();  // it claims, and has no work
  read.queues[2].changes = {{std::chrono::seconds(1), {.priority = 10}}};
  const Outcome outcome = With(read, "HPF");
  // 0.8 s of 1.8 s after the warm-up: both; then it counts as -10.
  EXPECT_NEAR(PartOf(outcome, "low", "other"), 0.4 / 1.8, 0.03);
}

TEST(TenantsInLoads, a_queue_that_is_gone_claims_no_priority_any_more) {
  TenantLoad load;
  load.AddHinted("low", "a", "priority", {0});
  load.AddHinted("other", "b", "priority", {0});
  sched::sim::Load read = load.Read();
  read.queues.push_back(read.queues[0]);
  read.queues[2].tasks.clear();
  read.queues[2].hints.priority = 10;
  read.queues[2].gone = std::chrono::seconds(1);
  const Outcome outcome = With(read, "HPF");
  // It counts as -10, and in the last 1 s of 1.8 s after the warm-up as 0.
  EXPECT_NEAR(PartOf(outcome, "low", "other"), 0.5 / 1.8, 0.03);
}

TEST(TenantsInLoads, without_a_tenant_processes_share_as_before) {
  TenantLoad load;
  load.Add("a", "", {100});
  load.Add("b", "", {100});
  load.Add("c", "", {200});
  const Outcome outcome = With(load.Read(), "EEVDF");
  EXPECT_TRUE(outcome.tenants.empty());
  EXPECT_NEAR(PartOf(outcome, "c", "a"), 2.0 / 3, 0.01);
  EXPECT_EQ(OutcomesText({&outcome, 1}).find("TENANT"), std::string::npos);
}

TEST(TenantsInLoads, guarantees_and_limits_of_the_file_are_those_of_all_processes_together) {
  TenantLoad load;
  for (int i = 0; i < 3; ++i) load.Add("capped", "capped", {100});
  load.Add("rest", "rest", {100});
  const sched::sim::Load read =
      load.Read("[[tenant]]\nname = 'capped'\nusers = [1]\nlimit = 20\nweight = 10000\n");
  EXPECT_NEAR(ShareOf(With(read, "RESERVE:tenant"), "capped"), 0.2, 0.02);
}

TEST(TenantsInLoads, are_shown_as_text_and_as_json) {
  TenantLoad load;
  load.Add("p", "lab", {100});
  load.Add("q", "", {100});
  const Outcome outcome = With(load.Read(), "EEVDF");
  const std::string text = OutcomesText({&outcome, 1});
  EXPECT_NE(text.find("\nPOLICY  TENANT   COMMANDS/s  TIME %\nEEVDF   lab "), std::string::npos) << text;
  const nlohmann::json json = OutcomesJson({&outcome, 1});
  ASSERT_EQ(json[0]["tenants"].size(), 1u);
  EXPECT_EQ(json[0]["tenants"][0]["tenant"], "lab");
  EXPECT_NEAR(json[0]["tenants"][0]["share"].get<double>(), outcome.Find("p")->share, 1e-9);
}

}  // namespace
}  // namespace xsched::cli
