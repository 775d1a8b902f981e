#include "cli/top/queue_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/top/history.h"

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;

QueueRates Queue(uint64_t id, int32_t priority, double share) {
  QueueRates entry;
  entry.queue = {};
  entry.queue.queue_id = id;
  entry.queue.hints.priority = priority;
  entry.device_share = share;
  return entry;
}

std::vector<uint64_t> Ids(const std::vector<QueueRates>& queues) {
  std::vector<uint64_t> ids;
  for (const QueueRates& entry : queues) ids.push_back(entry.queue.queue_id);
  return ids;
}

TEST(QueueOrder, has_the_biggest_first_and_equals_by_id) {
  std::vector<QueueRates> queues = {Queue(3, 0, 0.5), Queue(1, 9, 0.1), Queue(2, 0, 0.5)};
  Sort(queues, Order::kDevice);
  EXPECT_THAT(Ids(queues), ElementsAre(2, 3, 1));
  Sort(queues, Order::kPriority);
  EXPECT_THAT(Ids(queues), ElementsAre(1, 2, 3));
}

TEST(QueueOrder, comes_round_to_the_first_after_the_last) {
  Order order = Order::kDevice;
  for (int i = 0; i < kOrderCount; ++i) order = NextOrder(order);
  EXPECT_EQ(order, Order::kDevice);
}

TEST(Selection, stays_with_its_queue_when_the_order_changes) {
  std::vector<QueueRates> queues = {Queue(1, 0, 0.9), Queue(2, 5, 0.1)};
  Selection selection;
  EXPECT_EQ(selection.Row(queues), 0);
  Sort(queues, Order::kPriority);
  EXPECT_EQ(selection.Row(queues), 1);
}

TEST(Selection, moves_within_the_rows_and_goes_to_the_nearest_when_its_queue_ends) {
  std::vector<QueueRates> queues = {Queue(1, 0, 0), Queue(2, 0, 0), Queue(3, 0, 0)};
  Selection selection;
  EXPECT_EQ(selection.Move(queues, -1), 0);
  EXPECT_EQ(selection.Move(queues, 1), 1);
  EXPECT_EQ(selection.Move(queues, 9), 2);
  queues.pop_back();
  EXPECT_EQ(selection.Row(queues), 1);
  queues.clear();
  EXPECT_EQ(selection.Row(queues), -1);
  EXPECT_EQ(selection.Move(queues, 1), -1);
  queues.push_back(Queue(7, 0, 0));
  EXPECT_EQ(selection.Row(queues), 0);
}

TEST(History, forgets_the_oldest_and_is_always_as_wide) {
  History history(3);
  EXPECT_EQ(history.Sparkline(1, 3), "   ");
  history.Add(1);
  EXPECT_EQ(history.Sparkline(1, 3), "  █");
  for (double value : {0.0, 0.01, 7.0}) history.Add(value);
  EXPECT_EQ(history.Sparkline(1, 3), " ▁█");
  EXPECT_EQ(history.Sparkline(1, 2), "▁█");
  EXPECT_EQ(history.Sparkline(1, 3, /*ascii=*/true), " .@");
}

}  // namespace
}  // namespace xsched::cli
