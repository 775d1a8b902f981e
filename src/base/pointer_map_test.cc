#include "base/pointer_map.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
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

// The keys are like addresses, aligned and close together, so that they share slots. They are few, so each is
// used repeatedly.
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

size_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A program that makes and releases queues all day: few at a time, each at another address.
TEST(PointerMap, a_million_keys_that_come_and_go_leave_memory_bounded) {
  constexpr size_t kLive = 15;
  int value = 0;
  std::vector<uint64_t> live;
  std::mt19937_64 random(1);
  PointerMap<int> map;
  const size_t before = BytesInUse();
  if (before == 0) GTEST_SKIP() << "a sanitizer's allocator does not say what is in use";
  for (int step = 0; step < 1'000'000; ++step) {
    const uint64_t key = random() >> 1 | 1;
    ASSERT_TRUE(map.Insert(key, &value));
    if (live.size() < kLive) {
      live.push_back(key);
      continue;
    }
    uint64_t& leaving = live[random() % kLive];
    ASSERT_EQ(map.Remove(leaving), &value);
    leaving = key;
  }
  EXPECT_LT(BytesInUse() - before, 64u << 10);
}

// If two keys hash to the same entry, the first one gets it. The order of visits shows this.
bool WantTheSameEntry(uint64_t key, uint64_t other) {
  uint64_t visited_first[2] = {0, 0};
  for (int round = 0; round < 2; ++round) {
    PointerMap<int> map;
    int value = 0;
    EXPECT_TRUE(map.Insert(round == 0 ? key : other, &value));
    EXPECT_TRUE(map.Insert(round == 0 ? other : key, &value));
    map.ForEach([&](uint64_t visited, int*) {
      if (visited_first[round] == 0) visited_first[round] = visited;
    });
  }
  return visited_first[0] != visited_first[1];
}

// Two keys alternate in one entry as fast as possible, so that readers read it during changes.
TEST(PointerMap, a_reader_of_an_entry_that_changes_hands_never_gets_the_other_keys_value) {
  const uint64_t keys[2] = {64, [] {
                              uint64_t other = 128;
                              while (!WantTheSameEntry(64, other)) other += 64;
                              return other;
                            }()};
  int values[2] = {};
  PointerMap<int> map;
  std::atomic<bool> done{false};
  std::atomic<int64_t> found{0};
  std::atomic<int64_t> wrong{0};
  std::thread reader([&] {
    for (uint64_t i = 0; !done.load(std::memory_order_relaxed); i ^= 1) {
      int* value = map.Find(keys[i]);
      if (value == nullptr) continue;
      found.fetch_add(1, std::memory_order_relaxed);
      if (value != &values[i]) wrong.fetch_add(1, std::memory_order_relaxed);
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (uint64_t turn = 0; turn % 1000 != 0 || std::chrono::steady_clock::now() < end; ++turn) {
    EXPECT_TRUE(map.Insert(keys[turn % 2], &values[turn % 2]));
    EXPECT_EQ(map.Remove(keys[turn % 2]), &values[turn % 2]);
  }
  done = true;
  reader.join();
  EXPECT_GT(found, 0);
  EXPECT_EQ(wrong, 0);
}

// Each key determines its value. A reader may miss a key that is inserted and removed, but it never sees
// another key's value, and never misses a key that stays.
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
