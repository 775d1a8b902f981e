#include "preempt/gates/gate_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace xsched::preempt {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;

// An in-order queue of commands, markers and gates. It retires as many commands as a test wants.
class FakeQueue final : public GateDriver {
 public:
  bool AppendGate(uint64_t* gate) override {
    if (refuse_gates) return false;
    *gate = ++last_gate_;
    items_.push_back({Item::kGate, last_gate_});
    return true;
  }
  bool OpenGate(uint64_t gate) override {
    if (!refuse_opening) opened.push_back(gate);
    if (const auto opening = on_opening) opening();
    return !refuse_opening;
  }
  bool AppendMarker(uint64_t upto) override {
    if (refuse_markers) return false;
    items_.push_back({Item::kMarker, upto});
    ++markers;
    return true;
  }
  void Append(uint64_t number) { items_.push_back({Item::kCommand, number}); }

  // Runs up to `commands` commands, as far as gates allow. Returns the last number that a marker has
  // reported.
  uint64_t Run(int commands) {
    uint64_t told = 0;
    while (next_ < items_.size()) {
      const Item& item = items_[next_];
      if (item.kind == Item::kGate && std::find(opened.begin(), opened.end(), item.value) == opened.end())
        break;
      if (item.kind == Item::kCommand && commands-- == 0) break;
      if (item.kind == Item::kCommand) ran.push_back(item.value);
      if (item.kind == Item::kMarker) told = item.value;
      ++next_;
    }
    return told;
  }

  uint64_t gates() const { return last_gate_; }

  std::vector<uint64_t> opened;
  std::vector<uint64_t> ran;
  bool refuse_gates = false;
  bool refuse_markers = false;
  bool refuse_opening = false;
  std::function<void()> on_opening;
  int markers = 0;

 private:
  struct Item {
    enum { kCommand, kMarker, kGate } kind;
    uint64_t value;
  };
  std::vector<Item> items_;
  size_t next_ = 0;
  uint64_t last_gate_ = 0;
};

class GateChainTest : public testing::Test {
 protected:
  void Launch() {
    ++submitted_;
    chain_.BeforeLaunch(submitted_, Now(), limits_, queue_);
    queue_.Append(submitted_);
  }
  // The device runs `commands` commands of length `each`, and the agent acts on it.
  void Run(int commands, Duration each = microseconds(10)) {
    size_t before = queue_.ran.size();
    uint64_t told = queue_.Run(commands);
    time_ += each * static_cast<int64_t>(queue_.ran.size() - before);
    if (told > retired_) retired_ = told;
    Attend();
  }
  void Attend() {
    chain_.OnRetired(retired_, time_);
    chain_.Advance(submitted_, Now(), limits_, queue_);
  }
  GateChain::Now Now() const { return {retired_, hold_, bounded_, tracked_, time_}; }

  FakeQueue queue_;
  std::atomic<uint32_t> closed_{0};
  GateChain chain_{closed_};
  GateChain::Limits limits_{16, 8, microseconds(2000)};
  uint64_t submitted_ = 0;
  uint64_t retired_ = 0;
  bool hold_ = false;
  bool bounded_ = true;
  bool tracked_ = false;
  TimePoint time_{microseconds(1)};
};

TEST_F(GateChainTest, an_unbounded_running_queue_gets_no_gates_and_no_markers) {
  bounded_ = false;
  for (int i = 0; i < 100; ++i) Launch();
  EXPECT_FALSE(chain_.HasClosed());
  EXPECT_EQ(queue_.Run(1000), 0u);
  EXPECT_EQ(queue_.ran.size(), 100u);
}

TEST_F(GateChainTest, a_gate_that_the_driver_does_not_open_stays_in_front) {
  hold_ = true;
  Launch();
  hold_ = false;
  for (int i = 0; i < 30; ++i) Launch();
  queue_.refuse_opening = true;
  const GateChain::Advanced refused = chain_.Advance(submitted_, Now(), limits_, queue_);
  EXPECT_EQ(refused, (GateChain::Advanced{.opened = 0, .refused = true}));
  EXPECT_TRUE(chain_.HasClosed());
  EXPECT_EQ(chain_.OpenEnd(submitted_), 0u);
  queue_.refuse_opening = false;
  for (int i = 0; i < 30; ++i) Run(1000);
  EXPECT_EQ(queue_.ran.size(), submitted_);
  EXPECT_TRUE(std::is_sorted(queue_.opened.begin(), queue_.opened.end()));
  EXPECT_EQ(queue_.opened.front(), 1u);
}

TEST_F(GateChainTest, what_is_launched_on_a_held_queue_while_its_gate_opens_gets_another_gate) {
  hold_ = true;
  Launch();
  hold_ = false;
  queue_.on_opening = [this] {
    queue_.on_opening = nullptr;
    hold_ = true;
    std::thread([this] { Launch(); }).join();
  };
  Attend();
  EXPECT_EQ(queue_.gates(), 2u);
}

TEST_F(GateChainTest, a_tracked_queue_that_fills_slowly_gets_a_marker_once_a_millisecond_and_no_gates) {
  bounded_ = false;
  tracked_ = true;
  time_ += std::chrono::seconds(1);
  for (int i = 0; i < 100; ++i) {
    Launch();
    time_ += microseconds(500);
  }
  EXPECT_FALSE(chain_.HasClosed());
  EXPECT_EQ(queue_.markers, 50);
  EXPECT_GE(queue_.Run(1000), 98u);
}

TEST_F(GateChainTest, a_tracked_queue_that_is_filled_at_once_tells_its_progress_by_batches) {
  bounded_ = false;
  tracked_ = true;
  for (int i = 0; i < 100; ++i) Launch();
  EXPECT_FALSE(chain_.HasClosed());
  EXPECT_EQ(queue_.Run(20), 16u);
  EXPECT_EQ(queue_.markers, 12);
}

TEST_F(GateChainTest, a_tracked_queue_of_long_commands_tells_of_each) {
  bounded_ = false;
  tracked_ = true;
  for (int i = 0; i < 9; ++i) Launch();
  Run(9, std::chrono::milliseconds(20));
  for (int i = 0; i < 50; ++i) Launch();
  EXPECT_EQ(queue_.Run(6), 15u);
}

// There, each of these markers waits for every unfinished command in front of it.
TEST_F(GateChainTest, an_out_of_order_queue_with_many_commands_gets_few_gates_and_markers) {
  limits_.out_of_order = true;
  for (int i = 0; i < 10000; ++i) Launch();
  EXPECT_LE(queue_.gates(), 250u);
  EXPECT_LE(queue_.markers, 250);
  for (int i = 0; i < 20000 && queue_.ran.size() < submitted_; ++i) Run(100);
  EXPECT_EQ(queue_.ran.size(), submitted_);
}

TEST_F(GateChainTest, an_out_of_order_queue_with_few_commands_has_gates_as_near_as_another) {
  for (int i = 0; i < 60; ++i) Launch();
  const uint64_t in_order = queue_.gates();
  FakeQueue out_of_order;
  std::atomic<uint32_t> closed{0};
  GateChain chain(closed);
  limits_.out_of_order = true;
  for (uint64_t number = 1; number <= 60; ++number) chain.BeforeLaunch(number, Now(), limits_, out_of_order);
  EXPECT_EQ(out_of_order.gates(), in_order);
}

TEST_F(GateChainTest, a_tracked_out_of_order_queue_with_many_commands_gets_few_markers) {
  bounded_ = false;
  tracked_ = true;
  limits_.out_of_order = true;
  for (int i = 0; i < 10000; ++i) Launch();
  EXPECT_LE(queue_.markers, 200);
}

// Otherwise there is one at each launch where a marker takes longer than that.
TEST_F(GateChainTest, a_tracked_out_of_order_queue_that_fills_slowly_gets_few_markers) {
  bounded_ = false;
  tracked_ = true;
  limits_.out_of_order = true;
  for (int i = 0; i < 10000; ++i) {
    Launch();
    time_ += std::chrono::milliseconds(1);
  }
  EXPECT_LE(queue_.markers, 200);
}

TEST_F(GateChainTest, a_held_queue_takes_commands_and_starts_none) {
  hold_ = true;
  for (int i = 0; i < 50; ++i) Launch();
  Run(1000);
  EXPECT_TRUE(queue_.ran.empty());
  EXPECT_EQ(chain_.OpenEnd(submitted_), 0u);
}

TEST_F(GateChainTest, what_was_in_flight_when_the_hold_came_still_runs) {
  Launch();
  Launch();
  hold_ = true;
  Launch();
  Launch();
  Run(1000);
  EXPECT_THAT(queue_.ran, ElementsAre(1, 2));
  EXPECT_EQ(retired_, 2u) << "a marker stands before the gate";
}

TEST_F(GateChainTest, after_a_hold_everything_runs_in_order) {
  hold_ = true;
  for (int i = 0; i < 100; ++i) Launch();
  hold_ = false;
  Attend();
  for (int i = 0; i < 300 && queue_.ran.size() < 100; ++i) Run(1);
  ASSERT_EQ(queue_.ran.size(), 100u);
  EXPECT_TRUE(std::is_sorted(queue_.ran.begin(), queue_.ran.end()));
  EXPECT_FALSE(chain_.HasClosed());
}

TEST_F(GateChainTest, no_more_than_the_limit_is_ever_in_flight) {
  for (int i = 0; i < 500; ++i) {
    Launch();
    uint64_t in_flight = chain_.OpenEnd(submitted_) - retired_;
    EXPECT_LE(in_flight, 16u);
    if (i % 3 == 0) Run(2);
  }
  for (int i = 0; i < 2000 && queue_.ran.size() < 500; ++i) {
    Run(1);
    EXPECT_LE(chain_.OpenEnd(submitted_) - retired_, 16u);
  }
  EXPECT_EQ(queue_.ran.size(), 500u);
}

TEST_F(GateChainTest, long_commands_go_one_at_a_time) {
  for (int i = 0; i < 8; ++i) Launch();
  for (int i = 0; i < 4; ++i) Run(1, microseconds(2500));
  size_t ran = queue_.ran.size();
  hold_ = true;
  Run(1000, microseconds(2500));
  EXPECT_LE(queue_.ran.size(), ran + 1) << "at a hold at most one more command may start";
}

// A command in flight waited for the program for minutes, which says nothing about the next one.
TEST_F(GateChainTest, after_a_command_of_minutes_a_queue_that_retires_nothing_still_gets_on_within_seconds) {
  for (int i = 0; i < 3; ++i) Launch();
  Run(2, std::chrono::minutes(5));
  for (int i = 0; i < 5; ++i) Launch();
  const size_t before = queue_.opened.size();
  time_ += std::chrono::seconds(5);
  Attend();
  EXPECT_EQ(queue_.opened.size(), before + 1);
}

TEST_F(GateChainTest, a_queue_that_nobody_can_hold_any_more_is_opened_at_once) {
  for (int i = 0; i < 100; ++i) Launch();
  ASSERT_TRUE(chain_.HasClosed());
  bounded_ = false;
  Attend();
  EXPECT_FALSE(chain_.HasClosed());
}

TEST_F(GateChainTest, each_gate_is_opened_once_and_in_order) {
  for (int i = 0; i < 200; ++i) Launch();
  for (int i = 0; i < 2000 && queue_.ran.size() < 200; ++i) Run(1);
  for (size_t i = 0; i < queue_.opened.size(); ++i) EXPECT_EQ(queue_.opened[i], i + 1);
  EXPECT_FALSE(chain_.HasClosed());
}

// It would never open: nothing would report that what is in front of it has retired.
TEST_F(GateChainTest, there_is_no_gate_where_the_driver_refuses_the_marker_in_front_of_it) {
  queue_.refuse_markers = true;
  for (int i = 0; i < 40; ++i) Launch();
  EXPECT_FALSE(chain_.HasClosed());
  queue_.refuse_markers = false;
  Launch();
  EXPECT_TRUE(chain_.HasClosed()) << "and the next launch tries again";
}

TEST_F(GateChainTest, a_driver_that_refuses_gates_leaves_the_queue_running) {
  queue_.refuse_gates = true;
  hold_ = true;
  for (int i = 0; i < 20; ++i) Launch();
  EXPECT_FALSE(chain_.HasClosed());
  Run(1000);
  EXPECT_EQ(queue_.ran.size(), 20u);
}

TEST_F(GateChainTest, a_queue_whose_driver_refused_a_gate_has_gates_again_a_second_later) {
  queue_.refuse_gates = true;
  hold_ = true;
  Launch();
  queue_.refuse_gates = false;
  time_ += std::chrono::milliseconds(999);
  Launch();
  EXPECT_FALSE(chain_.HasClosed()) << "a driver that always refuses is not asked for each command";
  time_ += std::chrono::milliseconds(1);
  Launch();
  EXPECT_TRUE(chain_.HasClosed());
  Run(1000);
  EXPECT_EQ(queue_.ran.size(), 2u) << "the third command is held";
}

// A driver in which one call blocks until a test releases it.
class BlockingDriver final : public GateDriver {
 public:
  bool AppendGate(uint64_t* gate) override {
    *gate = ++gates_;
    if (block_appending) Block(append_entered);
    return true;
  }
  bool OpenGate(uint64_t) override {
    if (block_opening) Block(open_entered);
    opened.fetch_add(1);
    return true;
  }
  bool AppendMarker(uint64_t) override { return true; }

  void Block(std::promise<void>& entered) {
    entered.set_value();
    let_go.get_future().wait();
  }

  std::promise<void> append_entered;
  std::promise<void> open_entered;
  std::promise<void> let_go;
  std::atomic<bool> block_appending{false};
  std::atomic<bool> block_opening{false};
  std::atomic<int> opened{0};

 private:
  uint64_t gates_ = 0;
};

TEST(GateChainAndAThreadInTheDriver, a_launch_that_stands_in_the_driver_does_not_keep_gates_closed) {
  std::atomic<uint32_t> closed{0};
  GateChain chain(closed);
  BlockingDriver driver;
  const GateChain::Limits limits{16, 1, microseconds(2000)};
  GateChain::Now now{0, true, true, false, TimePoint{}};
  chain.BeforeLaunch(1, now, limits, driver);
  driver.block_appending = true;
  std::thread launching([&] { chain.BeforeLaunch(2, now, limits, driver); });
  driver.append_entered.get_future().wait();

  GateChain::Now free = now;
  free.hold = false;
  auto advanced = std::async(std::launch::async, [&] { return chain.Advance(1, free, limits, driver); });
  EXPECT_EQ(advanced.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(driver.opened, 1);
  driver.let_go.set_value();
  launching.join();
  EXPECT_EQ(chain.Advance(2, free, limits, driver).opened, 1);
}

TEST(GateChainAndAThreadInTheDriver, a_thread_that_finds_another_one_opening_gates_leaves_it_to_that_one) {
  std::atomic<uint32_t> closed{0};
  GateChain chain(closed);
  BlockingDriver driver;
  const GateChain::Limits limits{16, 1, microseconds(2000)};
  GateChain::Now now{0, true, true, false, TimePoint{}};
  chain.BeforeLaunch(1, now, limits, driver);
  chain.BeforeLaunch(2, now, limits, driver);
  now.hold = false;
  driver.block_opening = true;
  GateChain::Advanced first;
  std::thread opening([&] { first = chain.Advance(2, now, limits, driver); });
  driver.open_entered.get_future().wait();
  driver.block_opening = false;
  EXPECT_EQ(chain.Advance(2, now, limits, driver), GateChain::Advanced{});
  driver.let_go.set_value();
  opening.join();
  EXPECT_TRUE(first.outdated);
  EXPECT_EQ(driver.opened, 2);
}

}  // namespace
}  // namespace xsched::preempt
