#include "base/pointer_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

namespace xsched {
namespace {

TEST(PointerMap, an_empty_map_finds_and_removes_nothing) {
  PointerMap<int> map;
  EXPECT_EQ(map.Find(1), nullptr);
  EXPECT_EQ(map.Remove(1), nullptr);
  map.ForEach([](uint64_t, int*) { FAIL(); });
}

TEST(PointerMap, inserting_a_key_again_replaces_its_value) {
  PointerMap<int> map;
  int first = 1;
  int second = 2;
  ASSERT_TRUE(map.Insert(42, &first));
  ASSERT_TRUE(map.Insert(42, &second));
  EXPECT_EQ(map.Find(42), &second);
  EXPECT_EQ(map.Remove(42), &second);
  EXPECT_EQ(map.Remove(42), nullptr);
  EXPECT_EQ(map.Find(42), nullptr);
}

// Keys like addresses, aligned and close together, so that they share slots; few enough that they come back.
TEST(PointerMap, it_agrees_with_a_plain_map_through_many_changes) {
  PointerMap<int> map;
  std::map<uint64_t, int*> plain;
  std::vector<int> values(1000);
  std::mt19937 random(1);
  for (int step = 0; step < 100'000; ++step) {
    uint64_t key = 0x7f0000000000 + random() % 300 * 64;
    int* value = &values[random() % values.size()];
    if (random() % 2 == 0) {
      ASSERT_TRUE(map.Insert(key, value));
      plain[key] = value;
    } else {
      auto found = plain.find(key);
      ASSERT_EQ(map.Remove(key), found == plain.end() ? nullptr : found->second);
      plain.erase(key);
    }
    uint64_t other = 0x7f0000000000 + random() % 300 * 64;
    auto expected = plain.find(other);
    ASSERT_EQ(map.Find(other), expected == plain.end() ? nullptr : expected->second);
  }
  std::map<uint64_t, int*> visited;
  map.ForEach([&](uint64_t key, int* value) { EXPECT_TRUE(visited.emplace(key, value).second); });
  EXPECT_EQ(visited, plain);
}

TEST(PointerMap, every_key_is_found_after_growing) {
  PointerMap<int> map;
  std::vector<int> values(10'000);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_TRUE(map.Insert(8 * (i + 1), &values[i]));
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(map.Find(8 * (i + 1)), &values[i]);
}

// Each key carries the value that belongs to it: a reader may miss a key that comes and goes, but never sees
// another's value, nor misses one that stays.
TEST(PointerMap, readers_without_locks_see_a_keys_own_value_or_none) {
  constexpr uint64_t kStaying = 100;
  constexpr uint64_t kAll = 400;
  std::vector<int> values(kAll + 1);
  PointerMap<int> map;
  for (uint64_t key = 1; key <= kStaying; ++key) ASSERT_TRUE(map.Insert(key, &values[key]));

  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) {
        for (uint64_t key = 1; key <= kAll; ++key) {
          int* value = map.Find(key);
          if (value == nullptr ? key <= kStaying : value != &values[key]) ++wrong;
        }
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    for (uint64_t key = kStaying + 1; key <= kAll; ++key) EXPECT_TRUE(map.Insert(key, &values[key]));
    for (uint64_t key = kStaying + 1; key <= kAll; ++key) EXPECT_EQ(map.Remove(key), &values[key]);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace xsched
