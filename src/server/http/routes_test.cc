#include "server/http/routes.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

namespace xsched::server::http {
namespace {

using nlohmann::json;

constexpr uid_t kServerUser = 900;
const Peer kAdmin{.uid = kServerUser, .is_admin = true};
const Peer kUser{0, 1000, {}};
const Peer kOther{0, 1001, {}};

class FakeScheduler final : public SchedulerClient {
 public:
  std::vector<ipc::QueueInfo> List() override {
    if (gone) throw std::runtime_error("the server is gone");
    return queues;
  }
  ipc::Status Status() override {
    ipc::Status status{};
    status.policy = kPolicyUtilizationPartition;
    ipc::SetText(status.setting, std::string_view("UP:process"));
    status.at_a_time = 2;
    return status;
  }
  UsageReport Usage(bool with_queues) override {
    if (gone) throw std::runtime_error("the server is gone");
    asked_for_queues = with_queues;
    return {usage, {}, {}};
  }
  ipc::Reply SetHints(const ipc::SetHints& request) override { return hints.push_back(request), reply; }
  ipc::Reply SetConfig(const ipc::SetConfig& request) override { return configs.push_back(request), reply; }
  ipc::Reply SetPolicy(const ipc::SetPolicy& request) override { return policies.push_back(request), reply; }

  ipc::Reply SetActiveWindow(const ipc::SetActiveWindow& request) override {
    return windows.push_back(request), reply;
  }

  size_t changes() const { return hints.size() + configs.size() + policies.size() + windows.size(); }

  bool gone = false;
  bool asked_for_queues = false;
  std::vector<ipc::QueueInfo> queues;
  std::vector<ipc::Usage> usage;
  ipc::Reply reply{};
  std::vector<ipc::SetHints> hints;
  std::vector<ipc::SetConfig> configs;
  std::vector<ipc::SetPolicy> policies;
  std::vector<ipc::SetActiveWindow> windows;
};

class RoutesTest : public ::testing::Test {
 protected:
  RoutesTest() {
    AddQueue(17, 0x100000001, 100, kUser.uid);
    AddQueue(26, 0x200000001, 100, kUser.uid);
    AddQueue(33, 0x300000001, 200, kOther.uid);
    AddQueue(34, 0x300000001, 300, kUser.uid);
  }
  void AddQueue(uint64_t id, uint64_t handle, int32_t pid, uid_t user) {
    ipc::QueueInfo queue{};
    queue.queue_id = id;
    queue.handle = handle;
    queue.pid = pid;
    queue.uid = user;
    queue.level = 1;
    queue.threshold = 16;
    queue.batch_size = 8;
    queue.run = 1;
    ipc::SetText(queue.name, "program");
    scheduler_.queues.push_back(queue);
  }

  Answer Get(const std::string& path) {
    return routes_.Handle({"GET", path, {}, "", "127.0.0.1:50000", ""}, std::nullopt);
  }
  Answer Post(const std::string& path, const std::map<std::string, std::string>& parameters,
              const std::optional<Peer>& caller) {
    return routes_.Handle({"POST", path, parameters, "", "localhost", ""}, caller);
  }
  Answer Hint(const std::string& body, const std::optional<Peer>& caller) {
    return routes_.Handle({"POST", "/hint", {}, body, "", ""}, caller);
  }

  FakeScheduler scheduler_;
  AccessRules access_{kServerUser, std::nullopt};
  Routes routes_{scheduler_, access_, {}};
};

TEST_F(RoutesTest, everybody_may_read_queues_and_policy) {
  const json all = Get("/xqueues").body;
  ASSERT_EQ(all["xqueues"].size(), 4u);
  EXPECT_EQ(all["xqueues"][0], json({{"handle", 17},
                                     {"device", 0},
                                     {"level", 1},
                                     {"pid", 100},
                                     {"threshold", 16},
                                     {"batch_size", 8},
                                     {"ready", false},
                                     {"suspended", false}}));
  EXPECT_EQ(all["processes"].size(), 3u) << "each once";
  EXPECT_EQ(all["processes"][0], json({{"pid", 100}, {"cmdline", "program"}}));
  EXPECT_EQ(Get("/policy").body, json({{"policy", 4}, {"setting", "UP:process"}, {"k", 2}}));
  EXPECT_EQ(Get("/nothing").status, 404u);
}

TEST_F(RoutesTest, a_queue_is_named_by_its_number_or_its_programs_handle_in_hexadecimal) {
  for (const char* path : {"/xqueue/1a", "/xqueue/0x1A", "/xqueue/200000001"})
    EXPECT_EQ(Get(path).body["xqueue"]["handle"], 26) << path;
  EXPECT_EQ(Get("/xqueue/1a").body["process"]["pid"], 100);
  EXPECT_EQ(Get("/xqueue/300000001").status, 400u) << "of two programs";
  EXPECT_EQ(Get("/xqueue/ff").status, 404u);
  for (const char* path : {"/xqueue/", "/xqueue/no", "/xqueue/1g", "/xqueue/-1", "/xqueue/10000000000000000"})
    EXPECT_EQ(Get(path).status, 400u) << path;
}

TEST_F(RoutesTest, a_config_changes_what_is_given_of_queues_that_the_caller_may_change) {
  EXPECT_EQ(Post("/config/11", {{"level", "2"}, {"threshold", "32"}, {"batch_size", "4"}}, kUser).body,
            json({{"info", "success"}}));
  ASSERT_EQ(scheduler_.configs.size(), 1u);
  EXPECT_EQ(scheduler_.configs[0].queue_id, 17u);
  EXPECT_EQ(scheduler_.configs[0].level, 2u);
  EXPECT_EQ(scheduler_.configs[0].threshold, 32);
  EXPECT_EQ(scheduler_.configs[0].batch_size, 4);
  // What 1.2's xcli sends for one value.
  EXPECT_EQ(Post("/config/11", {{"level", "0"}, {"threshold", "-1"}, {"batch_size", "2"}}, kUser).status,
            200u);
  EXPECT_EQ(scheduler_.configs[1].level, 0u);
  EXPECT_EQ(scheduler_.configs[1].threshold, 0);
  EXPECT_EQ(Post("/config/11", {}, kUser).body, json({{"warning", "no change"}}));
  EXPECT_EQ(Post("/config/11", {{"level", "4"}}, kUser).status, 400u);
  EXPECT_EQ(Post("/config/11", {{"threshold", "9x"}}, kUser).status, 400u);
  EXPECT_EQ(Post("/config/11", {{"level", "1"}}, kOther).status, 403u);
  EXPECT_EQ(Post("/config/ff", {{"level", "1"}}, kUser).status, 404u);
  EXPECT_EQ(scheduler_.configs.size(), 2u);
  EXPECT_EQ(Post("/config/11", {{"level", "1"}}, kAdmin).status, 200u);
}

TEST_F(RoutesTest, hints_reach_a_queue_or_all_of_a_process) {
  EXPECT_EQ(Hint(R"({"hint_type": 1, "handle": 17, "priority": -3})", kUser).body,
            json({{"info", "success"}}));
  ASSERT_EQ(scheduler_.hints.size(), 1u);
  EXPECT_EQ(scheduler_.hints[0].queue_id, 17u);
  EXPECT_EQ(scheduler_.hints[0].mask, ipc::kHintPriority);
  EXPECT_EQ(scheduler_.hints[0].hints.priority, -3);
  EXPECT_EQ(Hint(R"({"hint_type": 2, "pid": 100, "handle": 0, "utilization": 30})", kUser).status, 200u);
  ASSERT_EQ(scheduler_.hints.size(), 3u);
  EXPECT_EQ(scheduler_.hints[2].queue_id, 26u);
  EXPECT_EQ(scheduler_.hints[2].hints.utilization, 30);
  EXPECT_EQ(Hint(R"({"hint_type": 1, "handle": 33, "priority": 1})", kUser).status, 403u);
  EXPECT_EQ(Hint(R"({"hint_type": 2, "pid": 200, "utilization": 1})", kUser).status, 404u);
  EXPECT_EQ(scheduler_.hints.size(), 3u);
  EXPECT_EQ(Hint(R"({"hint_type": 8, "handle": 17, "weight": 300})", kUser).status, 200u);
  ASSERT_EQ(scheduler_.hints.size(), 4u);
  EXPECT_EQ(scheduler_.hints[3].mask, ipc::kHintWeight);
  EXPECT_EQ(scheduler_.hints[3].more_hints.weight, 300);
  EXPECT_EQ(Hint(R"({"hint_type": 8, "handle": 17, "weight": 10001})", kUser).status, 400u);
  EXPECT_EQ(Hint(R"({"hint_type": 9, "handle": 17, "guarantee_us": 2000, "period_us": 10000, "limit_us": 0,
                     "burst_us": 0})",
                 kUser)
                .status,
            200u);
  ASSERT_EQ(scheduler_.hints.size(), 5u);
  EXPECT_EQ(scheduler_.hints[4].mask, ipc::kHintReservation);
  EXPECT_EQ(scheduler_.hints[4].more_hints.guarantee_us, 2000);
  EXPECT_EQ(scheduler_.hints[4].more_hints.period_us, 10'000);
  EXPECT_EQ(Hint(R"({"hint_type": 10, "handle": 17, "latency_target_us": 20000})", kUser).status, 200u);
  EXPECT_EQ(Hint(R"({"hint_type": 11, "handle": 17, "floor": 15})", kUser).status, 200u);
  ASSERT_EQ(scheduler_.hints.size(), 7u);
  EXPECT_EQ(scheduler_.hints[5].mask, ipc::kHintLatencyTarget);
  EXPECT_EQ(scheduler_.hints[5].more_hints.latency_target_us, 20'000);
  EXPECT_EQ(scheduler_.hints[6].mask, ipc::kHintFloor);
  EXPECT_EQ(scheduler_.hints[6].more_hints.floor, 15);
  EXPECT_EQ(Hint(R"({"hint_type": 10, "handle": 17, "latency_target_us": -1})", kUser).status, 400u);
  EXPECT_EQ(Hint(R"({"hint_type": 11, "handle": 17, "floor": 100})", kUser).status, 400u);
}

// The service is an administrator for the server.
TEST_F(RoutesTest, a_hint_has_the_rights_of_the_caller_and_not_those_of_the_service) {
  const std::string body = R"({"hint_type": 1, "handle": 17, "priority": 9})";
  EXPECT_EQ(Hint(body, kUser).status, 200u);
  EXPECT_EQ(scheduler_.hints.back().for_user, kUser.uid + 1);
  EXPECT_EQ(Hint(body, kAdmin).status, 200u);
  EXPECT_EQ(scheduler_.hints.back().for_user, 0u);
}

TEST_F(RoutesTest, the_policy_and_the_timeslice_are_the_administrators) {
  EXPECT_EQ(Post("/policy", {{"policy", "4"}}, kUser).status, 403u);
  EXPECT_EQ(Hint(R"({"hint_type": 3, "timeslice": 2000})", kUser).status, 403u);
  EXPECT_EQ(scheduler_.changes(), 0u);
  EXPECT_EQ(Post("/policy", {{"policy", "4"}}, kAdmin).body, json({{"info", "success"}}));
  EXPECT_EQ(Hint(R"({"hint_type": 3, "timeslice": 2000})", kAdmin).status, 200u);
  ASSERT_EQ(scheduler_.policies.size(), 2u);
  EXPECT_EQ(scheduler_.policies[0].policy, 4u);
  EXPECT_EQ(scheduler_.policies[1].timeslice_us, 2000);
  for (const std::string& policy :
       {std::string("0"), std::to_string(kPolicyMax), std::string("-1"), std::string()})
    EXPECT_EQ(Post("/policy", {{"policy", policy}}, kAdmin).status, 400u);
  scheduler_.reply.result = kXSchedErrorNotSupported;
  ipc::SetText(scheduler_.reply.text, "this server has no such policy");
  EXPECT_EQ(Post("/policy", {{"policy", "7"}}, kAdmin).body,
            json({{"error", "this server has no such policy"}}));
}

TEST_F(RoutesTest, a_policy_may_be_named_and_combined_and_k_be_set) {
  scheduler_.policies.clear();
  EXPECT_EQ(Post("/policy", {{"policy", "HPF/CFS:process"}, {"k", "4"}}, kAdmin).status, 200u);
  ASSERT_EQ(scheduler_.policies.size(), 1u);
  EXPECT_STREQ(scheduler_.policies[0].setting, "HPF/CFS:process");
  EXPECT_EQ(scheduler_.policies[0].at_a_time, 4u);
  for (const char* k : {"0", "-1", "many"})
    EXPECT_EQ(Post("/policy", {{"policy", "KEDF"}, {"k", k}}, kAdmin).status, 400u);
  EXPECT_EQ(Post("/policy", {{"policy", std::string(100, 'A')}}, kAdmin).status, 400u);
}

TEST_F(RoutesTest, the_active_window_is_that_of_a_display_of_the_caller) {
  EXPECT_EQ(Hint(R"({"hint_type": 7, "pid": 100, "display": 2})", kUser).body, json({{"info", "success"}}));
  ASSERT_EQ(scheduler_.windows.size(), 1u);
  EXPECT_EQ(scheduler_.windows[0].pid, 100);
  EXPECT_EQ(scheduler_.windows[0].display, 2u);
  EXPECT_EQ(scheduler_.windows[0].user, kUser.uid);
  for (const char* body : {R"({"hint_type": 7, "pid": 100})", R"({"hint_type": 7, "display": 0})",
                           R"({"hint_type": 7, "pid": -1, "display": 0})"})
    EXPECT_EQ(Hint(body, kUser).status, 400u) << body;
}

TEST_F(RoutesTest, hints_that_are_none_change_nothing) {
  for (const char* body :
       {"", "[]", "7", "{", R"({"hint_type": "1"})", R"({"hint_type": 0})", R"({"hint_type": 99})",
        R"({"hint_type": 9, "handle": 17})", R"({"hint_type": 1, "handle": 17})",
        R"({"hint_type": 1, "priority": 1})", R"({"hint_type": 1, "handle": 17, "priority": 256})",
        R"({"hint_type": 1, "handle": 17, "priority": 1.5})",
        R"({"hint_type": 2, "handle": 17, "utilization": 101})",
        R"({"hint_type": 2, "handle": "17", "utilization": 10})", R"({"hint_type": 3, "timeslice": 0})",
        R"({"hint_type": 1, "handle": 17, "priority": 99999999999999999999})"})
    EXPECT_EQ(Hint(body, kAdmin).status, 400u) << body;
  EXPECT_EQ(scheduler_.changes(), 0u);
}

TEST_F(RoutesTest, a_number_that_does_not_fit_is_not_taken_for_another_one) {
  for (const char* body : {R"({"hint_type": 1, "handle": 17, "priority": 18446744073709551615})",
                           R"({"hint_type": 18446744073709551617, "handle": 17, "priority": 1})",
                           R"({"hint_type": 7, "pid": 100, "display": 4294967297})",
                           R"({"hint_type": 7, "pid": 100, "display": -1})",
                           R"({"hint_type": 7, "pid": 100, "display": 18446744073709551615})"})
    EXPECT_EQ(Hint(body, kUser).status, 400u) << body;
  EXPECT_EQ(scheduler_.changes(), 0u);
  EXPECT_EQ(Hint(R"({"hint_type": 7, "pid": 100, "display": 4294967295})", kUser).status, 200u);
}

TEST_F(RoutesTest, any_handle_of_a_program_can_be_named) {
  AddQueue(35, 0xfffffffffffffff1, 300, kUser.uid);
  EXPECT_EQ(Hint(R"({"hint_type": 1, "handle": 18446744073709551601, "priority": 1})", kUser).status, 200u);
  ASSERT_EQ(scheduler_.hints.size(), 1u);
  EXPECT_EQ(scheduler_.hints[0].queue_id, 35u);
  EXPECT_EQ(Hint(R"({"hint_type": 1, "handle": -15, "priority": 1})", kUser).status, 400u);
}

TEST_F(RoutesTest, a_hint_of_a_process_that_the_scheduler_refuses_says_why) {
  scheduler_.reply = ipc::ReplyFrom(kXSchedErrorInvalidValue, 0, "a hint is out of its range");
  const Answer answer = Hint(R"({"hint_type": 1, "pid": 100, "priority": 1})", kUser);
  EXPECT_EQ(answer.status, 400u);
  EXPECT_EQ(answer.body, json({{"error", "a hint is out of its range"}}));
}

TEST_F(RoutesTest, a_caller_who_is_not_known_or_may_not_use_the_socket_changes_nothing) {
  EXPECT_EQ(Post("/policy", {{"policy", "4"}}, std::nullopt).status, 403u);
  EXPECT_EQ(Hint(R"({"hint_type": 1, "handle": 17, "priority": 1})", std::nullopt).status, 403u);
  EXPECT_EQ(Post("/config/11", {{"level", "1"}}, std::nullopt).status, 403u);
  EXPECT_EQ(scheduler_.changes(), 0u);
}

TEST_F(RoutesTest, a_web_page_may_neither_read_nor_change) {
  EXPECT_EQ(
      routes_.Handle({"POST", "/policy", {{"policy", "4"}}, "", "127.0.0.1", "https://example.org"}, kAdmin)
          .status,
      403u);
  EXPECT_EQ(routes_.Handle({"GET", "/xqueues", {}, "", "example.org:50000", ""}, kAdmin).status, 403u);
  EXPECT_EQ(routes_.Handle({"PUT", "/policy", {{"policy", "4"}}, "", "", ""}, kAdmin).status, 405u);
  EXPECT_EQ(scheduler_.changes(), 0u);
}

TEST_F(RoutesTest, a_server_that_is_gone_is_an_answer) {
  scheduler_.gone = true;
  EXPECT_EQ(Get("/xqueues").status, 503u);
  EXPECT_EQ(Get("/xqueues").body, json({{"error", "the server is gone"}}));
}

// What clients send is not trusted: any bytes are answered, and only valid ones change something.
TEST_F(RoutesTest, any_bytes_are_answered) {
  std::mt19937 random(1);
  const std::string alphabet = "{}[]\":,0123456789-.eE+ hint_typrioyuzalsc\\\x01\xff";
  auto text = [&](size_t most) {
    std::string bytes;
    for (size_t size = random() % most; bytes.size() < size;) bytes += alphabet[random() % alphabet.size()];
    return bytes;
  };
  const char* paths[] = {"/hint", "/policy", "/config/", "/xqueue/", "/xqueues", "/"};
  for (int i = 0; i < 20000; ++i) {
    const Request request{random() % 2 ? "GET" : "POST",
                          paths[random() % 6] + text(8),
                          {{random() % 2 ? "level" : "policy", text(8)}},
                          text(64),
                          "",
                          ""};
    const Answer answer = routes_.Handle(request, kAdmin);
    EXPECT_TRUE(answer.status == 200 || answer.status >= 400);
    EXPECT_TRUE(answer.body.is_object());
  }
}

TEST_F(RoutesTest, metrics_are_for_known_users_and_say_so_when_the_server_is_gone) {
  Request request{.method = "GET", .path = "/metrics"};
  EXPECT_EQ(routes_.Handle(request, std::nullopt).status, 403u);
  const Answer answer = routes_.Handle(request, kUser);
  EXPECT_EQ(answer.status, 200u);
  EXPECT_TRUE(answer.text.ends_with("# EOF\n"));
  scheduler_.gone = true;
  EXPECT_EQ(routes_.Handle(request, kUser).status, 503u);
}

TEST_F(RoutesTest, single_queues_are_asked_for_only_where_the_operator_wants_them) {
  routes_.Handle({.method = "GET", .path = "/metrics"}, kAdmin);
  EXPECT_FALSE(scheduler_.asked_for_queues);
  Routes routes(scheduler_, access_, {.per_queue = true});
  routes.Handle({.method = "GET", .path = "/metrics"}, kAdmin);
  EXPECT_TRUE(scheduler_.asked_for_queues);
}

TEST_F(RoutesTest, where_only_metrics_are_served_nothing_can_be_changed_or_listed) {
  Routes routes(scheduler_, access_, {.only = true});
  EXPECT_EQ(routes.Handle({.method = "GET", .path = "/metrics"}, kAdmin).status, 200u);
  EXPECT_EQ(routes.Handle({.method = "GET", .path = "/xqueues"}, kAdmin).status, 404u);
  EXPECT_EQ(
      routes.Handle({.method = "POST", .path = "/policy", .parameters = {{"policy", "4"}}}, kAdmin).status,
      405u);
  EXPECT_EQ(scheduler_.changes(), 0u);
}

}  // namespace
}  // namespace xsched::server::http
