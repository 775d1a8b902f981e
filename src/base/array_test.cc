#include "base/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace xsched {
namespace {

using testing::ElementsAre;

Array<int> UpTo(int count) {
  Array<int> array;
  for (int i = 0; i < count; ++i) EXPECT_TRUE(array.Push(i));
  return array;
}

std::vector<int> Contents(const Array<int>& array) { return {array.begin(), array.end()}; }

TEST(Array, elements_keep_their_values_while_it_grows) {
  Array<int> array = UpTo(1000);
  ASSERT_EQ(array.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(array[i], i);
  EXPECT_EQ(array.back(), 999);
}

TEST(Array, reserved_room_is_filled_in_place) {
  Array<int> array;
  ASSERT_TRUE(array.Reserve(100));
  const int* data = array.data();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(array.Push(i));
  EXPECT_EQ(array.data(), data);
}

TEST(Array, lack_of_memory_is_reported_and_changes_nothing) {
  Array<int> array = UpTo(3);
  EXPECT_FALSE(array.Reserve(SIZE_MAX / sizeof(int) / 2));
  EXPECT_THAT(Contents(array), ElementsAre(0, 1, 2));
  EXPECT_TRUE(array.Push(3));
}

TEST(Array, an_element_may_be_pushed_into_its_own_array) {
  Array<int> array = UpTo(1);
  array[0] = 7;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(array.Push(array[0]));
  EXPECT_EQ(array.back(), 7);
}

TEST(Array, insert_puts_an_element_before_another) {
  Array<int> array = UpTo(3);
  ASSERT_TRUE(array.Reserve(6));
  array.Insert(0, 10);
  array.Insert(2, 11);
  array.Insert(5, 12);
  EXPECT_THAT(Contents(array), ElementsAre(10, 0, 11, 1, 2, 12));
}

TEST(Array, remove_keeps_the_order) {
  Array<int> array = UpTo(5);
  array.Remove(1);
  EXPECT_THAT(Contents(array), ElementsAre(0, 2, 3, 4));
  array.Remove(3);
  EXPECT_THAT(Contents(array), ElementsAre(0, 2, 3));
}

TEST(Array, unordered_removal_puts_the_last_element_into_the_hole) {
  Array<int> array = UpTo(4);
  array.RemoveUnordered(1);
  EXPECT_THAT(Contents(array), ElementsAre(0, 3, 2));
  array.RemoveUnordered(2);
  EXPECT_THAT(Contents(array), ElementsAre(0, 3));
}

TEST(Array, remove_front_drops_the_oldest) {
  Array<int> array = UpTo(5);
  array.RemoveFront(2);
  EXPECT_THAT(Contents(array), ElementsAre(2, 3, 4));
  array.RemoveFront(3);
  EXPECT_TRUE(array.empty());
}

TEST(Array, clearing_keeps_the_room) {
  Array<int> array = UpTo(10);
  const int* data = array.data();
  array.Clear();
  EXPECT_TRUE(array.empty());
  ASSERT_TRUE(array.Push(1));
  EXPECT_EQ(array.data(), data);
}

TEST(Array, moving_leaves_an_empty_array_that_can_be_used) {
  Array<int> from = UpTo(2);
  Array<int> to = std::move(from);
  EXPECT_THAT(Contents(to), ElementsAre(0, 1));
  EXPECT_TRUE(from.empty());  // NOLINT: this tests a moved-from array
  EXPECT_TRUE(from.Push(5));
  EXPECT_THAT(Contents(to), ElementsAre(0, 1));
}

}  // namespace
}  // namespace xsched
