// One person with many user ids has the share of one.
#include "server/subordinate_users.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

constexpr uid_t kAlice = 1000;
constexpr uid_t kBob = 1001;
constexpr uid_t kFirstOfAlice = 100'000;
constexpr uid_t kFirstOfBob = 165'536;
constexpr uid_t kCount = 65'536;

SubordinateUsers SubordinateUsersOf(const std::string& text) {
  const TempFolder folder;
  const std::string path = folder.path() + "/subuid";
  std::ofstream(path) << text;
  return SubordinateUsers(path);
}

SubordinateUsers AlicesAndBobs() { return SubordinateUsersOf("1001:165536:65536\n1000:100000:65536\n"); }

TEST(SubordinateUsers, belong_to_the_user_whose_range_they_are_in) {
  const SubordinateUsers users = AlicesAndBobs();
  EXPECT_EQ(users.OwnerOf(kFirstOfAlice), kAlice);
  EXPECT_EQ(users.OwnerOf(kFirstOfAlice + kCount - 1), kAlice);
  EXPECT_EQ(users.OwnerOf(kFirstOfBob), kBob);
  for (const uid_t user : {uid_t{0}, kAlice, kBob, kFirstOfAlice - 1, kFirstOfBob + kCount, ~uid_t{0}})
    EXPECT_EQ(users.OwnerOf(user), user);
}

// The file can be edited by hand. A number without an owner counts as one more user, with its own share.
TEST(SubordinateUsers, of_ranges_that_overlap_all_have_an_owner) {
  const SubordinateUsers users =
      SubordinateUsersOf("1001:110000:100\n1000:100000:65536\n1001:100000:200\n1001:165000:1000\n");
  EXPECT_EQ(users.OwnerOf(100'100), kAlice) << "the first line of two that begin together";
  EXPECT_EQ(users.OwnerOf(110'050), kAlice);
  EXPECT_EQ(users.OwnerOf(110'200), kAlice) << "behind the range that lies within";
  EXPECT_EQ(users.OwnerOf(165'535), kAlice);
  EXPECT_EQ(users.OwnerOf(165'536), kBob);
  EXPECT_EQ(users.OwnerOf(165'999), kBob);
  EXPECT_EQ(users.OwnerOf(166'000), 166'000u);
}

TEST(SubordinateUsers, of_root_and_of_system_accounts_stay_users_of_their_own) {
  const SubordinateUsers users = SubordinateUsersOf("root:100000:65536\n999:165536:65536\n");
  EXPECT_EQ(users.OwnerOf(kFirstOfAlice), kFirstOfAlice);
  EXPECT_EQ(users.OwnerOf(kFirstOfBob), kFirstOfBob);
}

TEST(SubordinateUsers, in_lines_that_cannot_be_read_are_left_out) {
  const SubordinateUsers users = SubordinateUsersOf(
      "\n:\n::\n1000\n1000:5\n1000:x:1\n1000:200000:y\n1000:-1:5\n1000:99999999999:5\nno_such_user_:300000:"
      "5\n"
      "1000:100000:65536");
  EXPECT_EQ(users.OwnerOf(kFirstOfAlice), kAlice);
  for (const uid_t user : {5u, 200'000u, 300'000u}) EXPECT_EQ(users.OwnerOf(user), user);
  EXPECT_EQ(SubordinateUsers("/does/not/exist").OwnerOf(kFirstOfAlice), kFirstOfAlice);
}

TEST(SubordinateUsers, have_their_owners_connections_and_queues) {
  Quotas quotas(3, AlicesAndBobs());
  const Quotas::ConnectionShare shares[] = {
      {quotas, kAlice}, {quotas, kFirstOfAlice}, {quotas, kFirstOfAlice + 1}};
  EXPECT_FALSE(quotas.MayConnect(kFirstOfAlice + 2));
  EXPECT_TRUE(quotas.MayConnect(kFirstOfBob));
  for (uid_t i = 0; i < kMaxQueuesOfUser; ++i) quotas.AddQueue(kFirstOfAlice + i % 2, 1);
  EXPECT_FALSE(quotas.MayAddQueue(kAlice, 1));
}

TEST(SubordinateUsers, take_their_work_from_their_owners_share) {
  WorkBudget work(AlicesAndBobs());
  work.BeginRound();
  for (uid_t i = 0; i < WorkBudget::kPerRound; ++i) work.Charge(kFirstOfAlice + i, 1);
  EXPECT_TRUE(work.IsSpent(kAlice));
  EXPECT_TRUE(work.IsSpent(kFirstOfAlice + 1000));
  EXPECT_FALSE(work.IsSpent(kFirstOfBob));
}

class TenantsOfSubordinates : public ServerParts {
 protected:
  TenantsOfSubordinates() : ServerParts({}, AlicesAndBobs()) {}

  void SetRules(const std::string& text) {
    Result<TenantRules> rules = ParseTenantRules(text, "t.toml");
    ASSERT_TRUE(rules) << rules.error().text();
    tenants_.SetRules(std::move(*rules), agents_, queues_, now_);
  }
};

TEST_F(TenantsOfSubordinates, is_their_owner) {
  const Client alice = ConnectAgent({100, kAlice, {}});
  const Client subordinate = ConnectAgent({101, kFirstOfAlice, {}});
  const Client bobs = ConnectAgent({102, kFirstOfBob, {}});
  EXPECT_EQ(AgentOf(subordinate).tenant, AgentOf(alice).tenant);
  EXPECT_EQ(AgentOf(bobs).tenant->name, "uid:1001");
}

TEST_F(TenantsOfSubordinates, is_their_owner_also_where_a_rule_makes_a_tenant_for_each_user) {
  SetRules("[[tenant]]\nname = \"lab\"\neach = \"user\"\n");
  EXPECT_EQ(AgentOf(ConnectAgent({100, kFirstOfAlice, {}})).tenant->name, "lab/1000");
}

TEST_F(TenantsOfSubordinates, is_the_one_of_the_rule_that_names_their_owner) {
  SetRules("[[tenant]]\nname = \"nightly\"\nusers = [1000]\n");
  EXPECT_EQ(AgentOf(ConnectAgent({100, kFirstOfAlice, {}})).tenant->name, "nightly");
  EXPECT_EQ(AgentOf(ConnectAgent({101, kFirstOfBob, {}})).tenant->name, "uid:1001");
}

TEST_F(TenantsOfSubordinates, and_who_makes_their_recordings_and_has_their_displays) {
  std::vector<Client> tools;
  const auto record = [&](uid_t user) {
    tools.push_back(ConnectTool({100, user, {}}));
    EXPECT_TRUE(Ask(tools.back(), ipc::Record{}));
  };
  for (uid_t i = 0; i < kMaxRecordingsOfUser; ++i) record(kFirstOfAlice + i);
  record(kAlice);
  EXPECT_FALSE(recordings_.IsRecording(*tools.back().connection));
  record(kBob);
  EXPECT_TRUE(recordings_.IsRecording(*tools.back().connection));

  for (uid_t i = 0; i < kMaxDisplaysOfUser; ++i)
    EXPECT_GE(process_facts_.SetActiveWindow(kFirstOfAlice + i, 0, 100), 0);
  EXPECT_LT(process_facts_.SetActiveWindow(kAlice, 0, 100), 0);
  EXPECT_GE(process_facts_.SetActiveWindow(kBob, 0, 100), 0);
}

TEST_F(TenantsOfSubordinates, and_who_makes_their_records_in_the_audit_log) {
  const auto add = [&](uid_t user, bool is_admin = false) {
    const uint64_t before = audit_.left_out();
    audit_.Add({.what = "policy", .who = {100, user, {}, is_admin}}, now_);
    return audit_.left_out() == before;
  };
  for (uid_t i = 0; i < 2 * kMaxUsersWithAccounts; ++i) add(kFirstOfAlice + i);
  EXPECT_FALSE(add(kAlice));
  EXPECT_TRUE(add(kAlice, /*is_admin=*/true)) << "her containers are no administrators";
  EXPECT_TRUE(add(kBob));
}

TEST(SubordinateUsers, have_their_owners_part_of_the_history) {
  TimePoint now{std::chrono::hours(1)};
  History history(now, {.of_user = 10, .of_all = 15}, AlicesAndBobs());
  uint64_t next_queue = 1;
  const auto work = [&](uid_t user) {
    const sched::QueueId queue{next_queue++};
    QueueTrack::Reading reading;
    history.See(queue, user, /*reports=*/true, reading, now);
    reading.submitted = 1;
    history.See(queue, user, /*reports=*/true, reading, now);
    reading.retired = 1;
    history.See(queue, user, /*reports=*/true, reading, now += std::chrono::milliseconds(1));
  };
  const auto count = [&](auto&& visible) {
    size_t events = 0;
    for (History::Reader& reader : history.Read(TimePoint{}, visible)) {
      while (reader.Next() != nullptr) ++events;
    }
    return events;
  };
  const auto is_bob = [](uid_t user) { return user == kBob; };
  for (uid_t i = 0; i < 100; ++i) work(kFirstOfAlice + i);
  EXPECT_EQ(count([](uid_t) { return true; }), 10u);
  for (int i = 0; i < 8; ++i) work(kBob);
  for (uid_t i = 0; i < 100; ++i) work(kFirstOfAlice + i);
  EXPECT_EQ(count(is_bob), 7u);
  EXPECT_EQ(count([](uid_t) { return true; }), 15u);
}

}  // namespace
}  // namespace xsched::server::testing
