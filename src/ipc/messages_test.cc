// The generated conversions of messages. Each tested message is an example of its kind.
#include "ipc/messages.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "ipc/client.h"
#include "ipc/hints.h"
#include "ipc/testing/packet_of.h"
#include "sched/core/types.h"

namespace xsched::ipc {
namespace {

TEST(Messages, hints_come_back_as_they_went) {
  const sched::Hints hints{-3, 40, 20000, 700, -4, 9, 250, 15, 2000, 10'000, 5000, 1000, 20'000};
  QueueHints message{};
  SetHintsIn(message, hints);
  EXPECT_EQ(HintsIn(message, sched::Hints{}), hints);
  const WireHints wire = WireHintsFrom(hints);
  EXPECT_EQ(wire.lax_priority, -4);
  EXPECT_EQ(wire.critical_priority, 9);
}

TEST(Messages, hints_that_the_sender_is_too_old_to_know_stay_as_they_are) {
  QueueHints message{};
  SetHintsIn(message, sched::Hints{.priority = 5});
  message.more_hints = {};
  EXPECT_EQ(HintsIn(message, sched::Hints{.priority = 1, .weight = 300}),
            (sched::Hints{.priority = 5, .weight = 300}));
}

TEST(Messages, are_made_of_what_their_sender_has_and_zero_elsewhere) {
  const Hello hello = HelloFrom(Role::kTool, "a name");
  EXPECT_EQ(hello.major, kMajor);
  EXPECT_EQ(hello.minor, kMinor);
  EXPECT_EQ(hello.role, Role::kTool);
  EXPECT_STREQ(hello.name, "a name");
  EXPECT_EQ(hello.pid, 0);
  EXPECT_EQ(hello.job, 0u);
}

struct FakeScheduler {
  struct Policy {
    XPolicyType type() const { return kPolicyUtilizationPartition; }
  };
  Policy policy() const { return {}; }
  std::chrono::nanoseconds timeslice() const { return std::chrono::microseconds(2500); }
  size_t at_a_time() const { return 8; }
};
struct FakeAgents {
  size_t size() const { return 3; }
  uint64_t decisions() const { return 4; }
  uint64_t refused_queues() const { return 9; }
};
struct FakeQueues {
  size_t size() const { return 5; }
  uint64_t state_changes() const { return 6; }
};
struct FakeConnections {
  uint64_t rejected() const { return 7; }
};
struct FakeRecordings {
  uint64_t dropped() const { return 10; }
};
struct FakeTenants {
  uint64_t size() const { return 11; }
};

struct FakeUsage {
  uint64_t requests_without_queue() const { return 12; }
};

TEST(Messages, times_come_from_durations_in_their_unit) {
  const Status status = StatusFrom(FakeScheduler(), FakeAgents(), FakeQueues(), FakeConnections(),
                                   FakeRecordings(), FakeTenants(), FakeUsage());
  EXPECT_EQ(status.timeslice_us, 2500);
  EXPECT_EQ(status.policy, static_cast<uint32_t>(kPolicyUtilizationPartition));
  EXPECT_EQ(status.clients, 3u);
  EXPECT_EQ(status.decisions, 4u);
  EXPECT_EQ(status.queues, 5u);
  EXPECT_EQ(status.state_changes, 6u);
  EXPECT_EQ(status.rejected, 7u);
  EXPECT_EQ(status.refused_queues, 9u);
  EXPECT_EQ(status.dropped_records, 10u);
  EXPECT_EQ(status.at_a_time, 8u);
  EXPECT_EQ(status.tenants, 11u);
  EXPECT_EQ(status.requests_without_queue, 12u);
}

TEST(Messages, a_receiver_keeps_what_is_marked_so) {
  struct {
    uint32_t level = 0;
    int64_t threshold = 0;
    int64_t batch_size = 0;
    uint32_t index = 77;  // QueueConfig has one, which only names the queue
  } queue;
  QueueConfig config{};
  config.index = 1;
  config.level = 2;
  config.threshold = 30;
  config.batch_size = 4;
  KeepIn(queue, config);
  EXPECT_EQ(queue.level, 2u);
  EXPECT_EQ(queue.threshold, 30);
  EXPECT_EQ(queue.batch_size, 4);
  EXPECT_EQ(queue.index, 77u);
}

TEST(Messages, texts_of_a_peer_end) {
  QueueInfo info{};
  memset(info.name, 'a', sizeof info.name);
  memset(info.device_name, 'b', sizeof info.device_name);
  memset(info.waits_for_name, 'c', sizeof info.waits_for_name);
  const auto received = PacketOf(info).As<QueueInfo>();
  EXPECT_EQ(std::string(received.name), std::string(sizeof info.name - 1, 'a'));
  EXPECT_EQ(std::string(received.device_name), std::string(sizeof info.device_name - 1, 'b'));
  EXPECT_EQ(std::string(received.waits_for_name), std::string(sizeof info.waits_for_name - 1, 'c'));
}

TEST(Messages, what_is_shown_has_its_names_and_flags_are_true_or_false) {
  Status status{};
  status.timeslice_us = 2500;
  status.at_a_time = 4;
  status.pid = 812;
  status.is_admin = 1;
  SetText(status.version, "2.0.0");
  std::map<std::string, std::string> shown;
  ForEachShown(status, [&shown](const char* name, const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, const char*>) {
      shown[name] = value;
    } else if constexpr (std::is_same_v<Value, bool>) {
      shown[name] = value ? "true" : "false";
    } else {
      shown[name] = std::to_string(value);
    }
  });
  EXPECT_EQ(shown, (std::map<std::string, std::string>{{"k", "4"},
                                                       {"timeslice_us", "2500"},
                                                       {"pid", "812"},
                                                       {"tenants", "0"},
                                                       {"you_may_set_the_policy", "true"},
                                                       {"version", "2.0.0"},
                                                       {"your_highest_priority", "0"},
                                                       {"your_tenant", ""}}));
}

}  // namespace
}  // namespace xsched::ipc
