#include "hal/cuda/stream_priority.h"

#include <gtest/gtest.h>

#include <vector>

namespace xsched::cuda {
namespace {

std::vector<int> Among(const std::vector<int>& wanted) {
  std::vector<int> priorities;
  const auto for_each = [&](auto&& visit) {
    for (int wish : wanted) visit(wish);
  };
  for (int wish : wanted) priorities.push_back(PriorityAmong(wish, {0, -5}, for_each));
  return priorities;
}

TEST(StreamPriority, each_gets_what_it_wants_where_the_driver_has_it) {
  EXPECT_EQ(Among({0, -2, -5, -2}), (std::vector{0, -2, -5, -2}));
}

TEST(StreamPriority, those_that_want_more_than_there_is_keep_their_order) {
  EXPECT_EQ(Among({0, -2, -10, -12}), (std::vector{0, -2, -4, -5}));
  EXPECT_EQ(Among({-10, -12, -11}), (std::vector{-3, -5, -4}));
}

TEST(StreamPriority, a_stream_with_the_greatest_priority_makes_room_for_one_that_wants_more) {
  EXPECT_EQ(Among({-5, -10, 0}), (std::vector{-4, -5, 0}));
}

TEST(StreamPriority, equals_stay_equal) { EXPECT_EQ(Among({-9, -9, -8}), (std::vector{-5, -5, -4})); }

TEST(StreamPriority, the_least_urgent_share_a_place_when_there_are_too_many) {
  EXPECT_EQ(Among({-10, -9, -8, -7, -6, -5, -4, -3}), (std::vector{-5, -4, -3, -2, -1, 0, 0, 0}));
}

}  // namespace
}  // namespace xsched::cuda
