#include "base/fifo.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace xsched {
namespace {

TEST(Fifo, what_came_first_leaves_first) {
  Fifo<int> fifo;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(fifo.Push(i));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(fifo.front(), i);
    EXPECT_EQ(fifo.back(), 99);
    fifo.Pop();
  }
  EXPECT_TRUE(fifo.empty());
}

TEST(Fifo, order_holds_when_pushes_and_pops_alternate) {
  Fifo<int> fifo;
  int pushed = 0;
  int popped = 0;
  for (int round = 1; round <= 200; ++round) {
    for (int i = 0; i < round % 7; ++i) ASSERT_TRUE(fifo.Push(pushed++));
    for (int i = 0; i < round % 5 && !fifo.empty(); ++i) {
      ASSERT_EQ(fifo.front(), popped++);
      fifo.Pop();
    }
    ASSERT_EQ(fifo.size(), static_cast<size_t>(pushed - popped));
  }
}

TEST(Fifo, an_index_counts_from_the_oldest) {
  Fifo<int> fifo;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(fifo.Push(i));
  fifo.Pop();
  fifo.Pop();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(fifo[i], i + 2);
}

TEST(Fifo, memory_stays_bounded_by_what_is_in_it) {
  Fifo<int> fifo;
  ASSERT_TRUE(fifo.Push(0));
  ASSERT_TRUE(fifo.Push(1));
  ASSERT_TRUE(fifo.Push(2));
  ASSERT_TRUE(fifo.Push(3));
  // A million items pass through room for at most eight.
  int* low = &fifo.front();
  int* high = low;
  for (int i = 4; i < 1'000'000; ++i) {
    fifo.Pop();
    ASSERT_TRUE(fifo.Push(i));
    if (i < 100) {  // then the buffer has its final size
      low = high = &fifo.front();
      continue;
    }
    low = std::min(low, &fifo.front());
    high = std::max(high, &fifo.back());
  }
  EXPECT_LT(high - low, 16);
}

TEST(Fifo, clearing_forgets_everything) {
  Fifo<int> fifo;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(fifo.Push(i));
  fifo.Pop();
  fifo.Clear();
  EXPECT_TRUE(fifo.empty());
  ASSERT_TRUE(fifo.Push(9));
  EXPECT_EQ(fifo.front(), 9);
  EXPECT_EQ(fifo.size(), 1u);
}

TEST(Fifo, all_of_it_can_be_taken_at_once_and_it_goes_on_empty) {
  Fifo<int> fifo;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(fifo.Push(i));
  fifo.Pop();
  fifo.Pop();
  Fifo<int> all = fifo.TakeAll();
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all.front(), 2);
  EXPECT_EQ(all.back(), 4);
  EXPECT_TRUE(fifo.empty());
  ASSERT_TRUE(fifo.Push(7));
  EXPECT_EQ(fifo.front(), 7);
  EXPECT_EQ(fifo.size(), 1u);
}

TEST(Fifo, reserved_room_lets_the_next_push_stay_in_place) {
  Fifo<int> fifo;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(fifo.Reserve());
    const int* front = fifo.empty() ? nullptr : &fifo.front();
    ASSERT_TRUE(fifo.Push(i));
    if (front != nullptr) {
      EXPECT_EQ(&fifo.front(), front);
    }
  }
}

}  // namespace
}  // namespace xsched
