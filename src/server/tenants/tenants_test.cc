// What tenants may do, in a server without its loop: claims, rules that change, counters and the audit log.
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ipc/hints.h"
#include "ipc/tenant_memory.h"
#include "server/tenants/audit_log.h"
#include "server/tenants/audit_text.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

using namespace std::chrono_literals;

const Peer kAlice{100, 1000, {1000}};
const Peer kAlicesOther{101, 1000, {1000}};
const Peer kBob{200, 1001, {1001}};
const Peer kAdmin{300, kServerUser, {}};

class TenantsTest : public ServerParts {
 protected:
  TenantsTest() { SetRules(""); }

  void SetRules(const std::string& text) {
    Result<TenantRules> rules = ParseTenantRules(text, "t.toml");
    ASSERT_TRUE(rules) << rules.error().text();
    tenants_.SetRules(std::move(*rules), agents_, queues_, now_);
    agents_.Decide(now_);
  }
  Client AgentWith(const Peer& peer, int32_t priority) {
    Client agent = ConnectAgent(peer);
    EXPECT_TRUE(CreateQueue(agent, 0, priority));
    agents_.Decide(now_);
    return agent;
  }
  // What counts for the scheduler, and what was asked for.
  Priority Counted(const Client& agent) {
    return scheduler_.GetHints(AgentOf(agent).queues.at(0).id)->priority;
  }
  Priority Asked(const Client& agent) { return AgentOf(agent).queues.at(0).hints.priority; }
  ipc::Reply SetPriority(const Client& tool, pid_t pid, int32_t priority, uint32_t for_user = 0) {
    ipc::SetHints request{};
    request.pid = pid;
    request.mask = ipc::kHintPriority;
    request.hints.priority = priority;
    request.for_user = for_user;
    EXPECT_TRUE(Ask(tool, request));
    agents_.Decide(now_);
    return tool.ReceiveA<ipc::Reply>().value_or(ipc::Reply{});
  }
  // As the tool sees them.
  std::map<std::string, ipc::Tenant> Tenants(const Client& tool) {
    EXPECT_TRUE(Ask(tool, ipc::GetUsage{}));
    std::map<std::string, ipc::Tenant> tenants;
    for (;;) {
      while (std::optional<ipc::Packet> packet = tool.Receive()) {
        if (packet->header().type != ipc::MessageType::kTenant) continue;
        const auto tenant = packet->As<ipc::Tenant>();
        tenants[tenant.name] = tenant;
      }
      if (!tools_.IsAnswering(*tool.connection)) return tenants;
      EXPECT_TRUE(tools_.Continue(*tool.connection, now_));
    }
  }
};

TEST_F(TenantsTest, a_user_may_lower_a_priority_and_not_raise_it_above_that_of_others) {
  const Client lowered = AgentWith(kAlice, -5);
  const Client raised = AgentWith(kBob, 255);
  EXPECT_EQ(Counted(lowered), -5);
  EXPECT_EQ(Counted(raised), 0);
  EXPECT_EQ(Asked(raised), 255);
}

TEST_F(TenantsTest, priorities_of_one_user_keep_their_order_and_distances) {
  const Client urgent = AgentWith(kAlice, 10);
  const Client batch = AgentWith(kAlicesOther, 0);
  const Client bystander = AgentWith(kBob, 0);
  EXPECT_EQ(Counted(urgent), 0);
  EXPECT_EQ(Counted(batch), -10);
  EXPECT_EQ(Counted(bystander), 0);
}

TEST_F(TenantsTest, what_was_lowered_counts_in_full_again_when_the_higher_claim_is_gone) {
  const Client batch = AgentWith(kAlicesOther, 0);
  {
    const Client urgent = AgentWith(kAlice, 10);
    EXPECT_EQ(Counted(batch), -10);
    connections_.Close(*urgent.connection, nullptr);
    RemoveClosed();
  }
  agents_.Decide(now_);
  EXPECT_EQ(Counted(batch), 0);
}

// What an agent gets of its tenant's memory account before the welcome.
class TenantsMemoryTest : public TenantsTest {
 protected:
  struct Joined {
    Client agent;
    std::unique_ptr<ipc::TenantMemoryShare> share = std::make_unique<ipc::TenantMemoryShare>();
    std::atomic<uint64_t> own{0};
    std::vector<std::string> told;

    // Takes the accounts that it was sent. Returns their number.
    int Read() {
      int accounts = 0;
      while (std::optional<ipc::Packet> packet = agent.Receive()) {
        if (packet->header().type == ipc::MessageType::kReply) told.push_back(packet->As<ipc::Reply>().text);
        if (packet->header().type != ipc::MessageType::kTenantMemory) continue;
        ++accounts;
        EXPECT_TRUE(share->Join(packet->fds[0].get(), packet->As<ipc::TenantMemory>().slot));
        share->Update(kDevice, own);
      }
      return accounts;
    }
    void Has(uint64_t bytes) {
      own = bytes;
      share->Update(kDevice, own);
    }
    uint64_t Together() const { return share->Together(kDevice); }
  };
  static constexpr XDevice kDevice = 5;

  std::unique_ptr<Joined> Join(const Peer& peer, int accounts = 1, uint16_t minor = ipc::kMinor) {
    auto joined = std::make_unique<Joined>();
    joined->agent = Connect(peer);
    joined->agent.segment = ipc::PopulatedSegment();
    EXPECT_TRUE(SayHello(joined->agent, ipc::Role::kAgent, 0, minor));
    EXPECT_EQ(joined->Read(), accounts);
    return joined;
  }
  void End(Joined& process) {
    connections_.Close(*process.agent.connection, nullptr);
    RemoveClosed();
  }
};

TEST_F(TenantsMemoryTest, nobody_counts_where_no_tenant_has_a_limit) {
  Join(kAlice, 0);
  SetRules("[[tenant]]\nname = 'lab'\nusers = [1001]\nmemory = '1KiB'\n");
  EXPECT_EQ(Join(kAlice)->share->limit(), ipc::kNoMemoryLimit) << "where one has, everybody does";
  EXPECT_EQ(Join(kBob)->share->limit(), 1024u);
  Join(kBob, 0, 8);
}

TEST_F(TenantsMemoryTest, processes_of_a_tenant_count_together_and_apart_from_others) {
  SetRules("[default]\nmemory = '1KiB'\n");
  const auto one = Join(kAlice);
  const auto two = Join(kAlicesOther);
  const auto bob = Join(kBob);
  one->Has(300);
  two->Has(400);
  bob->Has(1);
  EXPECT_EQ(one->Together(), 700u);
  EXPECT_EQ(bob->Together(), 1u);
  const auto shown = Tenants(ConnectTool(kAdmin));
  EXPECT_EQ(shown.at("uid:1000").memory_used, 700u);
  EXPECT_EQ(shown.at("uid:1000").memory_limit, 1024u);
  EXPECT_EQ(shown.at("uid:1001").memory_used, 1u);
}

TEST_F(TenantsMemoryTest, what_a_process_had_is_free_when_its_connection_ends) {
  SetRules("[default]\nmemory = '1KiB'\n");
  const auto one = Join(kAlice);
  const auto two = Join(kAlicesOther);
  two->Has(400);
  EXPECT_EQ(one->Together(), 400u);
  End(*two);
  EXPECT_EQ(one->Together(), 0u);
  End(*one);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).at("uid:1000").memory_used, 0u);
}

TEST_F(TenantsMemoryTest, other_limits_count_at_once) {
  SetRules("[default]\nmemory = '1KiB'\n");
  const auto process = Join(kAlice);
  SetRules("[default]\nmemory = '2KiB'\n");
  EXPECT_EQ(process->share->limit(), 2048u);
  EXPECT_EQ(process->Read(), 0) << "by the account alone";
  SetRules("");
  EXPECT_EQ(process->share->limit(), ipc::kNoMemoryLimit);
}

TEST_F(TenantsMemoryTest, a_process_of_another_tenant_takes_what_it_has_there) {
  SetRules("[default]\nmemory = '1KiB'\n");
  const auto moved = Join(kAlice);
  const auto remains = Join(kAlicesOther);
  moved->Has(300);
  SetRules("[default]\nmemory = '1KiB'\n[[tenant]]\nname = 'lab'\nusers = [1000]\nmemory = '2KiB'\n");
  EXPECT_EQ(moved->Read(), 1);
  EXPECT_EQ(moved->share->limit(), 2048u);
  EXPECT_EQ(moved->Together(), 300u);
  EXPECT_EQ(remains->Together(), 0u) << "in the former account";
  EXPECT_EQ(remains->Read(), 1);
  remains->Has(50);
  EXPECT_EQ(moved->Together(), 350u);
  End(*moved);
  EXPECT_EQ(remains->Together(), 50u);
}

TEST_F(TenantsMemoryTest, a_process_that_comes_back_to_a_tenant_has_one_place_there) {
  const std::string limited = "[default]\nmemory = '1KiB'\n";
  SetRules(limited);
  const auto process = Join(kAlice);
  process->Has(300);
  for (int reload = 0; reload <= ipc::kMaxMemoryProcesses; ++reload) {
    SetRules(limited + "[[tenant]]\nname = 'lab'\nusers = [1000]\nmemory = '2KiB'\n");
    RemoveClosed();
    ASSERT_EQ(process->Read(), 1) << reload;
    ASSERT_EQ(process->share->limit(), 2048u) << reload;
    SetRules(limited);
    RemoveClosed();
    ASSERT_EQ(process->Read(), 1) << reload;
    ASSERT_EQ(process->share->limit(), 1024u) << reload;
    ASSERT_EQ(process->Together(), 300u) << reload;
    ASSERT_LE(AgentOf(process->agent).former_memory.size(), 2u) << reload;
  }
  const auto other = Join(kAlicesOther);
  EXPECT_EQ(other->Together(), 300u);
  End(*process);
  EXPECT_EQ(other->Together(), 0u);
}

TEST_F(TenantsMemoryTest, a_limit_that_comes_later_does_not_bind_a_process_that_has_not_counted) {
  const auto process = Join(kAlice, 0);
  SetRules("[default]\nmemory = '1KiB'\n");
  EXPECT_EQ(process->Read(), 0);
  EXPECT_EQ(Join(kAlicesOther)->share->limit(), 1024u);
}

TEST_F(TenantsMemoryTest, a_process_for_which_there_is_no_place_is_told_and_runs_without_a_limit) {
  SetRules("[default]\nmemory = '1KiB'\n");
  std::vector<std::unique_ptr<Joined>> processes;
  for (int i = 0; i < ipc::kMaxMemoryProcesses; ++i) processes.push_back(Join(kAlice));
  const auto one_more = Join(kAlice, 0);
  ASSERT_EQ(one_more->told.size(), 1u);
  EXPECT_EQ(
      one_more->told[0],
      "the memory of this process does not count for tenant uid:1000, and has no limit: it has no place "
      "among the tenant's processes");
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).at("uid:1000").refused, 1u);
  Join(kBob);
  End(*processes[5]);
  Join(kAlice);
}

TEST_F(TenantsMemoryTest, a_process_that_does_not_read_gets_its_new_account_when_it_does) {
  SetRules("[default]\nmemory = '1KiB'\n");
  const auto process = Join(kAlice);
  while (process->agent.connection->Send(ipc::Wake{})) {
  }
  SetRules("[[tenant]]\nname = 'lab'\nusers = [1000]\nmemory = '2KiB'\n");
  EXPECT_EQ(process->Read(), 0);
  agents_.SendUnsent(AgentOf(process->agent));
  EXPECT_EQ(process->Read(), 1);
  EXPECT_EQ(process->share->limit(), 2048u);
}

TEST_F(TenantsMemoryTest, a_process_that_does_not_read_and_loses_its_place_is_sent_none) {
  SetRules("[default]\nmemory = '1KiB'\n");
  const auto process = Join(kAlice);
  while (process->agent.connection->Send(ipc::Wake{})) {
  }
  SetRules(
      "[[tenant]]\nname = 'lab'\nusers = [1000]\nmemory = '2KiB'\n"
      "[[tenant]]\nname = 'full'\nusers = [1001]\nmemory = '2KiB'\n");
  std::vector<std::unique_ptr<Joined>> others;
  for (int i = 0; i < ipc::kMaxMemoryProcesses; ++i) others.push_back(Join(kBob));
  SetRules("[[tenant]]\nname = 'full'\nusers = [1000, 1001]\nmemory = '2KiB'\n");
  EXPECT_EQ(process->Read(), 0);
  agents_.SendUnsent(AgentOf(process->agent));
  EXPECT_EQ(process->Read(), 0);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).at("full").refused, 1u);
}

TEST_F(TenantsTest, the_priorities_of_laxity_are_claims_as_well) {
  const Client agent = AgentWith(kAlice, 0);
  ipc::QueueHints message{};
  message.index = 0;
  sched::Hints hints{.laxity_us = 1000, .lax_priority = -5, .critical_priority = 200};
  ipc::SetHintsIn(message, hints);
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(agent), PacketOf(message), now_));
  const sched::Hints counted = *scheduler_.GetHints(AgentOf(agent).queues.at(0).id);
  EXPECT_EQ(counted.critical_priority, 0);
  EXPECT_EQ(counted.lax_priority, -205);
  EXPECT_EQ(counted.priority, -200);
}

TEST_F(TenantsTest, the_program_that_claims_too_much_is_told_once) {
  const Client agent = ConnectAgent(kAlice);
  ASSERT_TRUE(CreateQueue(agent, 0, 10));
  ASSERT_TRUE(CreateQueue(agent, 1, 10));
  const auto reply = agent.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
  EXPECT_STREQ(
      reply->text,
      "priority 10 counts as 0: 0 is the highest that tenant uid:1000 may claim. All queues of the tenant "
      "count 10 less");
  EXPECT_EQ(agent.ReadAll<ipc::Reply>(), 0);
}

TEST_F(TenantsTest, a_program_that_claims_no_more_than_it_may_is_told_nothing) {
  const Client agent = AgentWith(kAlice, 0);
  const Client urgent = AgentWith(kAlicesOther, 10);
  EXPECT_EQ(agent.ReadAll<ipc::Reply>(), 0);
}

TEST_F(TenantsTest, a_claim_that_changes_what_others_of_the_tenant_count_is_charged_for_all_of_them) {
  const Client agent = AgentWith(kAlice, 0);
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(agent, index, 0));
  agents_.Decide(now_);
  for (int round = 0; round < 10'000; ++round) work_.BeginRound();
  for (int32_t priority = 1; priority <= 2; ++priority) {
    agent.ReadAll<ipc::Wake>();
    ipc::QueueHints hints{};
    sched::Hints claim;
    claim.priority = priority;
    ipc::SetHintsIn(hints, claim);
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(agent), PacketOf(hints), now_));
    EXPECT_FALSE(work_.IsSpent(kAlice.uid));
    agents_.Decide(now_);
  }
  EXPECT_TRUE(work_.IsSpent(kAlice.uid));
}

TEST_F(TenantsTest, a_user_who_hints_is_told_what_counts) {
  const Client agent = AgentWith(kAlice, 0);
  const ipc::Reply reply = SetPriority(ConnectTool(kAlice), kAlice.pid, 7);
  EXPECT_EQ(reply.result, static_cast<uint32_t>(kXSchedSuccess));
  EXPECT_EQ(reply.count, 1u);
  EXPECT_EQ(std::string(reply.text).rfind("priority 7 counts as 0", 0), 0u);
  EXPECT_EQ(Counted(agent), 0);
}

TEST_F(TenantsTest, an_administrator_sets_any_priority_and_lowers_nothing_by_it) {
  const Client agent = AgentWith(kAlice, 0);
  const Client other = AgentWith(kAlicesOther, 0);
  const ipc::Reply reply = SetPriority(ConnectTool(kAdmin), kAlice.pid, 100);
  EXPECT_STREQ(reply.text, "");
  EXPECT_EQ(Counted(agent), 100);
  EXPECT_EQ(Counted(other), 0);
}

TEST_F(TenantsTest, what_an_administrator_has_set_counts_until_the_user_sets_it) {
  const Client agent = AgentWith(kAlice, 0);
  SetPriority(ConnectTool(kAdmin), kAlice.pid, 100);
  SetPriority(ConnectTool(kAlice), kAlice.pid, 100);
  EXPECT_EQ(Counted(agent), 0);
}

TEST_F(TenantsTest, what_an_administrator_has_not_set_stays_a_claim_of_the_program) {
  const auto claims = [&](const Client& agent, const sched::Hints& hints) {
    ipc::QueueHints message{};
    ipc::SetHintsIn(message, hints);
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(agent), PacketOf(message), now_));
    agents_.Decide(now_);
  };
  const auto counted = [&](const Client& agent) {
    return *scheduler_.GetHints(AgentOf(agent).queues.at(0).id);
  };
  const Client with_laxity = AgentWith(kAlice, 0);
  claims(with_laxity, {.laxity_us = 0, .lax_priority = 255, .critical_priority = 255});
  SetPriority(ConnectTool(kAdmin), kAlice.pid, 20);
  agents_.Decide(now_);
  EXPECT_EQ(counted(with_laxity).priority, 20);
  EXPECT_EQ(counted(with_laxity).lax_priority, 0);
  EXPECT_EQ(counted(with_laxity).critical_priority, 0);

  const Client with_priority = AgentWith(kBob, 255);
  ipc::SetHints laxity{};
  laxity.pid = kBob.pid;
  laxity.mask = ipc::kHintLaxity;
  laxity.hints.laxity_us = 1000;
  laxity.hints.critical_priority = 30;
  const Client admin = ConnectTool(kAdmin);
  ASSERT_TRUE(Ask(admin, laxity));
  agents_.Decide(now_);
  EXPECT_EQ(counted(with_priority).priority, 0);
  EXPECT_EQ(counted(with_priority).critical_priority, 30);
  claims(with_priority, {.priority = 10, .laxity_us = 1000, .critical_priority = 30});
  EXPECT_EQ(counted(with_priority).critical_priority, 30) << "which the program has not changed";
  EXPECT_EQ(counted(with_priority).priority, 0);
}

TEST_F(TenantsTest, an_administrator_who_sets_the_time_of_a_laxity_grants_no_priority) {
  const Client admin = ConnectTool(kAdmin);
  const auto set_time = [&](const Client& tool, const Peer& peer, uint32_t mask = 0) {
    ipc::SetHints request{};
    request.pid = peer.pid;
    request.mask = ipc::kHintLaxityTime | mask;
    request.hints.laxity_us = 5000;
    request.hints.priority = 30;
    ASSERT_TRUE(Ask(tool, request));
    ASSERT_EQ(tool.ReceiveA<ipc::Reply>().value_or(ipc::Reply{}).count, 1u);
    agents_.Decide(now_);
  };
  const auto counted = [&](const Client& agent) {
    return *scheduler_.GetHints(AgentOf(agent).queues.at(0).id);
  };
  const Client claims_too_much = AgentWith(kAlice, 10);
  set_time(admin, kAlice);
  EXPECT_EQ(AgentOf(claims_too_much).queues.at(0).hints.critical_priority, 10);
  EXPECT_EQ(counted(claims_too_much).laxity_us, 5000);
  EXPECT_EQ(counted(claims_too_much).critical_priority, 0);
  EXPECT_EQ(counted(claims_too_much).lax_priority, -10);

  const Client has_laxity = AgentWith(kBob, 0);
  ipc::QueueHints claim{};
  ipc::SetHintsIn(claim, sched::Hints{.laxity_us = 0, .lax_priority = 255, .critical_priority = 255});
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(has_laxity), PacketOf(claim), now_));
  set_time(admin, kBob);
  EXPECT_EQ(counted(has_laxity).laxity_us, 5000);
  EXPECT_EQ(counted(has_laxity).lax_priority, 0);
  EXPECT_EQ(counted(has_laxity).critical_priority, 0);

  set_time(admin, kBob, ipc::kHintPriority);
  EXPECT_EQ(counted(has_laxity).critical_priority, 30) << "which the administrator has named";
  EXPECT_EQ(counted(has_laxity).lax_priority, 0);
}

TEST_F(TenantsTest, a_queue_that_gets_a_laxity_keeps_the_priority_that_an_administrator_has_given_it) {
  const Client agent = AgentWith(kAlice, 0);
  const Client other = AgentWith(kAlicesOther, 0);
  const Client admin = ConnectTool(kAdmin);
  SetPriority(admin, kAlice.pid, 20);
  ipc::SetHints request{};
  request.pid = kAlice.pid;
  request.mask = ipc::kHintLaxityTime;
  request.hints.laxity_us = 5000;
  ASSERT_TRUE(Ask(admin, request));
  agents_.Decide(now_);
  EXPECT_EQ(scheduler_.GetHints(AgentOf(agent).queues.at(0).id)->critical_priority, 20);
  EXPECT_EQ(Counted(other), 0) << "it claims nothing";

  request.hints.laxity_us = 1;
  ASSERT_TRUE(Ask(ConnectTool(kAlice), request));
  agents_.Decide(now_);
  EXPECT_EQ(scheduler_.GetHints(AgentOf(agent).queues.at(0).id)->critical_priority, 0)
      << "the user says when it counts";
}

// Otherwise it would count after the administrator has taken it back.
TEST_F(TenantsTest, a_user_who_sets_the_time_of_a_laxity_makes_no_right_of_a_priority_that_was_given) {
  const Client agent = AgentWith(kAlice, 0);
  SetPriority(ConnectTool(kAdmin), kAlice.pid, 20);
  ipc::SetHints request{};
  request.pid = kAlice.pid;
  request.mask = ipc::kHintLaxityTime;
  request.hints.laxity_us = 1;
  ASSERT_TRUE(Ask(ConnectTool(kAlice), request));
  agents_.Decide(now_);
  EXPECT_EQ(Counted(agent), 20);
  EXPECT_EQ(scheduler_.GetHints(AgentOf(agent).queues.at(0).id)->critical_priority, 0);
}

TEST_F(TenantsTest, an_administrator_who_asks_for_a_user_has_the_users_rights) {
  const Client agent = AgentWith(kAlice, 0);
  const ipc::Reply reply = SetPriority(ConnectTool(kAdmin), kAlice.pid, 9, kAlice.uid + 1);
  EXPECT_EQ(std::string(reply.text).rfind("priority 9 counts as 0", 0), 0u);
  EXPECT_EQ(Counted(agent), 0);
}

TEST_F(TenantsTest, programs_of_administrators_claim_what_they_like) {
  EXPECT_EQ(Counted(AgentWith(kAdmin, 200)), 200);
  EXPECT_EQ(Counted(AgentWith({400, 0, {0}}, 200)), 200);
}

TEST_F(TenantsTest, other_rules_count_at_once_for_the_queues_that_there_are) {
  const Client alice = AgentWith(kAlice, 10);
  const Client bob = AgentWith(kBob, 10);
  SetRules("[[tenant]]\nname = \"urgent\"\nusers = [1000]\nmax_priority = 50\nweight = 300\n");
  EXPECT_EQ(Counted(alice), 10);
  EXPECT_EQ(Counted(bob), 0);
  EXPECT_EQ(AgentOf(alice).tenant->name, "urgent");
  EXPECT_EQ(AgentOf(alice).tenant->queues, 1u);
  SetRules("");
  EXPECT_EQ(Counted(alice), 0);
  EXPECT_EQ(AgentOf(alice).tenant->name, "uid:1000");
}

TEST_F(TenantsTest, a_tenant_that_the_rules_name_no_more_is_no_longer_listed) {
  SetRules("[[tenant]]\nname = 'former'\nusers = [1000]\n[[tenant]]\nname = 'kept'\nusers = [1001]\n");
  const Client alice = AgentWith(kAlice, 0);
  {
    const Client bob = AgentWith(kBob, 0);
    EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("former"), 1u);
  }
  SetRules("[[tenant]]\nname = 'kept'\nusers = [1001]\n");
  tenants_.RemoveEnded(queues_.claims());
  EXPECT_EQ(AgentOf(alice).tenant->name, "uid:1000");
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("former"), 0u);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("kept"), 1u) << "for what has been counted of it";
  SetRules("[[tenant]]\nname = 'former'\nusers = [1000]\n");
  tenants_.RemoveEnded(queues_.claims());
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).at("former").processes, 1u);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("uid:1000"), 1u) << "a user stays";
}

TEST_F(TenantsTest, a_tenant_has_no_more_queues_than_it_may) {
  SetRules("[[tenant]]\nname = \"small\"\nusers = [1000]\nqueues = 1\n");
  const Client agent = AgentWith(kAlice, 0);
  ASSERT_TRUE(CreateQueue(agent, 1, 0));
  const auto reply = agent.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_STREQ(reply->text, "tenant small has 1 queues already: further ones run unscheduled");
  EXPECT_EQ(queues_.size(), 1u);
  const Client other = AgentWith(kBob, 0);
  EXPECT_EQ(queues_.size(), 2u);
}

TEST_F(TenantsTest, users_see_their_tenants_and_administrators_all) {
  const Client alice = AgentWith(kAlice, 10);
  const Client bob = AgentWith(kBob, 0);
  auto seen = Tenants(ConnectTool(kAlice));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen["uid:1000"].lowered_by, 10);
  EXPECT_EQ(seen["uid:1000"].refused, 1u);
  EXPECT_EQ(seen["uid:1000"].queues, 1u);
  seen = Tenants(ConnectTool(kAdmin));
  EXPECT_TRUE(seen.contains("uid:1000") && seen.contains("uid:1001"));
}

TEST_F(TenantsTest, a_tool_of_an_older_version_is_sent_no_tenants) {
  Client old = Connect(kAlice);
  ASSERT_TRUE(SayHello(old, ipc::Role::kTool, 0, 6));
  ASSERT_TRUE(old.ReceiveA<ipc::Welcome>());
  ASSERT_TRUE(Ask(old, ipc::GetUsage{}));
  EXPECT_EQ(old.ReadAll<ipc::Tenant>(), 0);
}

TEST_F(TenantsTest, device_time_of_all_processes_is_counted_for_their_tenant) {
  const Client one = AgentWith(kAlice, 0);
  const Client other = AgentWith(kAlicesOther, 0);
  const Client bob = AgentWith(kBob, -5);
  for (const Client* agent : {&one, &other, &bob}) Submit(*agent, 0);
  agents_.Decide(now_);
  now_ += 1s;
  const auto seen = Tenants(ConnectTool(kAdmin));
  EXPECT_EQ(seen.at("uid:1000").service_ns, 1'000'000'000u);
  EXPECT_EQ(seen.at("uid:1001").service_ns, 0u);
  EXPECT_EQ(seen.at("uid:1001").held_ns, 1'000'000'000u);
}

TEST_F(TenantsTest, device_time_of_a_tenant_is_up_to_date_for_all_whose_tenant_it_is) {
  SetRules("[[tenant]]\nname = 'lab'\nusers = [1000, 1001]\n[[tenant]]\nname = 'other'\nusers = [1002]\n");
  const Client bob = AgentWith(kBob, 0);
  Submit(bob, 0);
  agents_.Decide(now_);
  recordings_.Look(now_);
  now_ += 1s;
  const Client tool = ConnectTool(kAlice);
  EXPECT_EQ(Tenants(tool).at("lab").service_ns, 1'000'000'000u);
  ASSERT_TRUE(Ask(tool, ipc::GetUsage{}));
  EXPECT_EQ(tool.ReadAll<ipc::Usage>(), 0) << "the accounts of its other users are theirs";
}

TEST_F(TenantsTest, a_round_brings_a_bounded_part_of_a_tenant_up_to_date) {
  SetRules("[[tenant]]\nname = 'lab'\nusers = [1000, 1001]\n");
  std::vector<Client> agents;
  for (size_t i = 0; i < 2 * kMaxAccountsPerRound; ++i) agents.push_back(AgentWith(kBob, 0));
  const Client tool = ConnectTool(kAlice);
  ASSERT_TRUE(Ask(tool, ipc::GetUsage{}));
  for (int rounds = 0; rounds < 2; ++rounds) {
    ASSERT_TRUE(tools_.IsAnswering(*tool.connection)) << rounds;
    EXPECT_EQ(tool.ReadAll<ipc::Tenant>(), 0) << rounds;
    ASSERT_TRUE(tools_.Continue(*tool.connection, now_));
  }
  EXPECT_FALSE(tools_.IsAnswering(*tool.connection));
  EXPECT_EQ(tool.ReadAll<ipc::Tenant>(), 1);
}

// Otherwise each answer that a tool leaves unread would keep a message for each of them.
TEST_F(TenantsTest, tenants_are_described_when_they_are_sent) {
  constexpr uid_t kFirst = 5000;
  constexpr uid_t kUsers = 3 * kMaxAccountsPerRound;
  const auto tenant = [&](uid_t user) -> Tenant& { return tenants_.Of({1, kFirst + user, {}}, {}); };
  for (uid_t user = 0; user < kUsers; ++user) tenant(user);
  const Client tool = ConnectTool(kAdmin);
  ASSERT_TRUE(Ask(tool, ipc::GetUsage{}));
  int sent = tool.ReadAll<ipc::Tenant>();
  ASSERT_GT(sent, 0);
  tenant(kUsers - 1).refused = 7;
  uint64_t refused = 0;
  while (tools_.IsAnswering(*tool.connection)) {
    ASSERT_TRUE(tools_.Continue(*tool.connection, now_));
    while (std::optional<ipc::Packet> packet = tool.Receive()) {
      if (packet->header().type != ipc::MessageType::kTenant) continue;
      ++sent;
      refused += packet->As<ipc::Tenant>().refused;
    }
  }
  EXPECT_EQ(sent, static_cast<int>(tenants_.size())) << "each once";
  EXPECT_EQ(refused, 7u);
}

TEST_F(TenantsTest, device_time_before_other_rules_stays_with_the_former_tenant) {
  const Client agent = AgentWith(kAlice, 0);
  Submit(agent, 0);
  agents_.Decide(now_);
  recordings_.Look(now_);
  now_ += 300ms;
  SetRules("[[tenant]]\nname = 'lab'\nusers = [1000]\n");
  now_ += 200ms;
  const auto seen = Tenants(ConnectTool(kAdmin));
  EXPECT_EQ(seen.at("uid:1000").service_ns, 300'000'000u);
  EXPECT_EQ(seen.at("lab").service_ns, 200'000'000u);
}

TEST_F(TenantsTest, a_list_names_the_tenant_and_the_priority_that_counts) {
  const Client agent = AgentWith(kAlice, 10);
  const Client tool = ConnectTool(kAlice);
  ASSERT_TRUE(Ask(tool, ipc::List{}));
  const auto info = tool.ReceiveA<ipc::QueueInfo>();
  ASSERT_TRUE(info);
  EXPECT_STREQ(info->tenant, "uid:1000");
  EXPECT_EQ(info->hints.priority, 10);
  EXPECT_EQ(info->counted_priority, 0);
}

TEST_F(TenantsTest, more_users_than_are_told_apart_are_one_tenant) {
  for (uid_t user = 0; user < kMaxTenants + 10; ++user) tenants_.Of({1, 5000 + user, {}}, {});
  EXPECT_EQ(tenants_.size(), kMaxTenants + 1);
  EXPECT_EQ(tenants_.Of({1, 900'000, {}}, {}).name, "others");
}

// ---- tenants of each job ----

class TenantOfEach : public TenantsMemoryTest {
 protected:
  // In this job, as the kernel would say.
  Client ConnectInJob(const Peer& peer, const std::string& job) {
    Client client = Connect(peer);
    client.connection->identity = ProcessIdentity{.job = job};
    client.segment = ipc::PopulatedSegment();
    return client;
  }
  Client AgentInJob(const Peer& peer, const std::string& job, int32_t priority = 0) {
    Client agent = ConnectInJob(peer, job);
    EXPECT_TRUE(SayHello(agent, ipc::Role::kAgent));
    EXPECT_TRUE(agent.ReceiveA<ipc::Welcome>());
    ipc::QueueCreated queue{};
    queue.level = kPreemptLevelDeactivate;  // it stops at once
    queue.device = 1;
    ipc::SetHintsIn(queue, sched::Hints{.priority = priority});
    EXPECT_TRUE(agents_.HandleMessage(AgentOf(agent), PacketOf(queue), now_));
    agents_.Decide(now_);
    return agent;
  }
  std::unique_ptr<Joined> JoinInJob(const Peer& peer, const std::string& job) {
    auto joined = std::make_unique<Joined>();
    joined->agent = ConnectInJob(peer, job);
    EXPECT_TRUE(SayHello(joined->agent, ipc::Role::kAgent));
    EXPECT_EQ(joined->Read(), 1);
    return joined;
  }
  void End(const Client& client) {
    connections_.Close(*client.connection, nullptr);
    RemoveClosed();
  }
  // The part of two seconds that each tenant has, if all of these always have work.
  std::map<std::string, double> SharesOf(const std::vector<const Client*>& agents) {
    for (const Client* agent : agents) Submit(*agent, 0);
    for (int i = 0; i < 4000; ++i) {
      now_ += 500us;
      for (const Client* agent : agents) {
        if (agent->IsHeld(0)) continue;
        agent->block(0).retired.fetch_add(1);
        Submit(*agent, 0);
      }
      agents_.Decide(now_);
    }
    std::map<std::string, double> shares;
    for (const auto& [name, tenant] : Tenants(ConnectTool(kAdmin)))
      shares[name] = static_cast<double>(tenant.service_ns) / 2e9;
    return shares;
  }
  static constexpr const char* kEachJob = "[[tenant]]\nname = 'night'\neach = 'job'\nmax_priority = 5\n";
};

TEST_F(TenantOfEach, jobs_of_one_user_have_rights_and_claims_of_their_own) {
  SetRules(kEachJob);
  const Client raised = AgentInJob(kAlice, "1", 9);
  const Client other = AgentInJob(kAlicesOther, "2", 5);
  const Client outside = AgentWith(kAlicesOther, 5);
  EXPECT_EQ(AgentOf(raised).tenant->name, "night/1");
  EXPECT_EQ(AgentOf(outside).tenant->name, "uid:1000");
  EXPECT_EQ(Counted(raised), 5);
  EXPECT_EQ(Counted(other), 5);
  EXPECT_EQ(Counted(outside), 0);
}

TEST_F(TenantOfEach, two_jobs_of_one_user_have_equal_shares_whatever_number_of_processes_they_have) {
  SetRules(kEachJob);
  scheduler_.SetPolicy(*sched::ParsePolicySetting("UP:tenant"));
  const Client alone = AgentInJob(kAlice, "1");
  const Client one = AgentInJob(kAlice, "2");
  const Client two = AgentInJob(kAlicesOther, "2");
  const Client three = AgentInJob(kAlice, "2");
  const auto shares = SharesOf({&alone, &one, &two, &three});
  EXPECT_NEAR(shares.at("night/1"), 0.5, 0.02);
  EXPECT_NEAR(shares.at("night/2"), 0.5, 0.02);
}

TEST_F(TenantOfEach, the_tenant_of_a_job_ends_with_its_last_process) {
  SetRules(kEachJob);
  const Client one = AgentInJob(kAlice, "1", 9);
  const Client two = AgentInJob(kAlicesOther, "1");
  End(one);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("night/1"), 1u);
  End(two);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("night/1"), 0u);
  const Client bob = AgentWith(kBob, 0);
  End(bob);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("uid:1001"), 1u) << "users stay, for what they have had";
}

TEST_F(TenantOfEach, a_tool_in_a_job_sees_the_tenant_and_leaves_none_behind) {
  SetRules(kEachJob);
  Client tool = ConnectInJob(kAlice, "1");
  ASSERT_TRUE(SayHello(tool, ipc::Role::kTool));
  ASSERT_TRUE(tool.ReceiveA<ipc::Welcome>());
  EXPECT_EQ(Tenants(tool).count("night/1"), 1u);
  End(tool);
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("night/1"), 0u);
}

TEST_F(TenantOfEach, any_number_of_short_jobs_leaves_no_tenant_behind) {
  SetRules(kEachJob);
  const size_t before = tenants_.size();
  for (size_t job = 0; job < kMaxTenants + 10; ++job) {
    const Client agent = AgentInJob(kAlice, std::to_string(job));
    ASSERT_EQ(AgentOf(agent).tenant->name, "night/" + std::to_string(job));
    End(agent);
  }
  EXPECT_EQ(tenants_.size(), before);
}

TEST_F(TenantOfEach, more_jobs_at_a_time_than_are_told_apart_are_the_tenant_of_their_rule) {
  SetRules(kEachJob);
  for (size_t job = 0; job < kMaxTenants; ++job) tenants_.Of(kAlice, {.job = std::to_string(job)});
  const Tenant& further = tenants_.Of(kAlice, {.job = "123456"});
  EXPECT_EQ(further.name, "night");
  EXPECT_EQ(further.rights.max_priority, 5);
  EXPECT_EQ(tenants_.Of(kBob, {}).name, "uid:1001") << "users are told apart as before";
  RemoveClosed();
  EXPECT_EQ(tenants_.Of(kAlice, {.job = "123456"}).name, "night/123456");
}

TEST_F(TenantOfEach, each_job_has_an_account_of_memory_as_long_as_it_lasts) {
  SetRules("[[tenant]]\nname = 'night'\neach = 'job'\nmemory = '1KiB'\n");
  const auto one = JoinInJob(kAlice, "1");
  const auto two = JoinInJob(kAlicesOther, "2");
  one->Has(300);
  two->Has(400);
  EXPECT_EQ(one->Together(), 300u);
  EXPECT_EQ(one->share->limit(), 1024u);
  const auto shown = Tenants(ConnectTool(kAdmin));
  EXPECT_EQ(shown.at("night/1").memory_used, 300u);
  EXPECT_EQ(shown.at("night/2").memory_limit, 1024u);
  End(one->agent);
  EXPECT_EQ(JoinInJob(kAlice, "1")->Together(), 0u);
}

TEST_F(TenantOfEach, other_rules_count_at_once_for_jobs_that_run) {
  SetRules(kEachJob);
  const Client agent = AgentInJob(kAlice, "1", 9);
  SetRules("[[tenant]]\nname = 'night'\neach = 'job'\nmax_priority = 7\nweight = 300\n");
  EXPECT_EQ(Counted(agent), 7);
  EXPECT_EQ(AgentOf(agent).tenant->rights.share.weight, 300);
  SetRules("[[tenant]]\nname = 'all'\njobs = ['*']\n");
  EXPECT_EQ(AgentOf(agent).tenant->name, "all");
  EXPECT_EQ(Counted(agent), 0);
  tenants_.RemoveEnded(queues_.claims());
  EXPECT_EQ(Tenants(ConnectTool(kAdmin)).count("night/1"), 0u);
}

// ---- the audit log ----

class LoggedTenants : public TenantsTest {
 protected:
  LoggedTenants() : former_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(text_);
    auto logger = std::make_shared<spdlog::logger>("audit", sink);
    logger->set_pattern("%v");
    spdlog::set_default_logger(logger);
  }
  ~LoggedTenants() override { spdlog::set_default_logger(former_); }
  LoggedTenants(const LoggedTenants&) = delete;
  LoggedTenants& operator=(const LoggedTenants&) = delete;

  std::string Log() {
    std::string log = text_.str();
    text_.str("");
    return log;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> former_;
};

TEST_F(LoggedTenants, changes_of_hints_say_who_what_from_what_to_what_and_whether_it_was_allowed) {
  const Client agent = AgentWith(kAlice, 0);
  SetPriority(ConnectTool(kAlice), kAlice.pid, -5);
  EXPECT_EQ(Log(), "pid 100 (user 1000): hints of pid 100: priority 0 -> priority -5: allowed\n");
  SetPriority(ConnectTool(kAlice), kAlice.pid, 5);
  EXPECT_EQ(Log(),
            "pid 100 (user 1000): hints of pid 100: priority -5 -> priority 5: corrected (priority 5 counts "
            "as 0: 0 is "
            "the highest that tenant uid:1000 may claim. All queues of the tenant count 5 less)\n");
  SetPriority(ConnectTool(kBob), kAlice.pid, 5);
  EXPECT_EQ(Log(), "pid 200 (user 1001): hints of pid 100: priority 5: refused (no such queue of yours)\n");
}

TEST_F(LoggedTenants, a_refused_policy_is_recorded_and_counted) {
  const Client tool = ConnectTool(kBob);
  ipc::SetPolicy request{};
  request.policy = kPolicyCompletelyFairScheduler;
  ASSERT_TRUE(Ask(tool, request));
  EXPECT_EQ(tool.ReadAll<ipc::Reply>(), 1);
  EXPECT_NE(Log().find("pid 200 (user 1001): policy: HPF, timeslice"), std::string::npos);
  EXPECT_EQ(tenants_.Of(kBob, {}).refused, 1u);
}

TEST_F(LoggedTenants, a_user_who_asks_without_end_does_not_fill_the_log_or_keep_others_out_of_it) {
  const Client tool = ConnectTool(kBob);
  for (int i = 0; i < 1000; ++i) SetPriority(tool, kAlice.pid, 5);
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 40);
  const Client agent = AgentWith(kAlice, 0);
  SetPriority(ConnectTool(kAlice), kAlice.pid, -5);
  EXPECT_EQ(Log(), "pid 100 (user 1000): hints of pid 100: priority 0 -> priority -5: allowed\n");
  now_ += 1s;
  SetPriority(tool, kAlice.pid, 5);
  EXPECT_NE(Log().find("(960 records of this user before it were left out)"), std::string::npos);
}

TEST_F(LoggedTenants, many_users_keep_neither_administrators_nor_later_users_out_of_the_log) {
  uid_t next_user = 5000;
  const auto add = [&](const Peer& who) {
    audit_.Add({.what = "policy", .who = who}, now_);
    return !Log().empty();
  };
  for (size_t i = 0; i < kMaxUsersWithAccounts; ++i) EXPECT_TRUE(add({1, next_user++, {}}));
  while (add({1, next_user, {}})) {
  }
  EXPECT_FALSE(add(kAlice)) << "further users have one allowance together";
  Peer admin = kAdmin;
  access_.Decide(admin);
  EXPECT_TRUE(add(admin));
  now_ += 1s;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(add({1, next_user++, {}})) << "the others' are full again";
}

std::string ChangesBetween(const std::string& from, const std::string& to) {
  return ChangesIn(*ParseTenantRules(from, "t"), *ParseTenantRules(to, "t"));
}

TEST(AuditTextTest, of_a_tenants_file_it_says_which_entries_were_added_removed_or_changed) {
  auto entry = [](const std::string& name, int weight) {
    return "[[tenant]]\nname = '" + name + "'\nusers = [1]\nweight = " + std::to_string(weight) + "\n";
  };
  const std::string two = entry("a", 1) + entry("b", 1);
  EXPECT_EQ(ChangesBetween(two, two), "nothing changed");
  EXPECT_EQ(ChangesBetween(two, entry("b", 2) + entry("c", 1)), "added c; removed a; changed b");
  EXPECT_EQ(ChangesBetween(two, entry("b", 1) + entry("a", 1)), "another order");
  EXPECT_EQ(ChangesBetween(two, two + "[default]\nlimit = 5\n"), "changed a, b, [default]");
  EXPECT_EQ(TextOf(*ParseTenantRules(two, "t")), "2 entries");
  EXPECT_EQ(TextOf(*ReadTenantRules("/nonexistent/tenants.toml", false)), "no file");
  std::string many;
  for (int i = 10; i < 40; ++i) many += entry(std::to_string(i), 1);
  EXPECT_EQ(ChangesBetween("", many), "added 10, 11, 12, 13, 14, 15, 16, 17 and 22 more");
}

TEST(AuditRecordTest, the_journal_gets_fields_that_a_text_cannot_add_to) {
  const AuditRecord record{.what = "hints",
                           .who = {7, 1000, {}},
                           .tenant = "uid:1000",
                           .target = "queue 3",
                           .from = "priority 0",
                           .to = "priority 5\nXSCHED_VERDICT=allowed",
                           .verdict = Verdict::kRefused,
                           .reason = "no"};
  EXPECT_EQ(
      JournalEntryOf(record, "line"),
      "MESSAGE=line\nPRIORITY=5\nSYSLOG_IDENTIFIER=xserver\nXSCHED_AUDIT=hints\nXSCHED_VERDICT=refused\n"
      "XSCHED_PID=7\nXSCHED_UID=1000\nXSCHED_TENANT=uid:1000\nXSCHED_TARGET=queue 3\nXSCHED_FROM=priority 0\n"
      "XSCHED_TO=priority 5 XSCHED_VERDICT=allowed\nXSCHED_REASON=no\n");
}

}  // namespace
}  // namespace xsched::server::testing
