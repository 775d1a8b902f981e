#include "preempt/queue/ref.h"

#include <gtest/gtest.h>

#include <set>

namespace xsched::preempt {
namespace {

struct Object {
  explicit Object(int& count) : disposed(count) {}
  void Dispose() {
    ++disposed;
    delete this;
  }
  std::atomic<uint32_t> references{1};
  int& disposed;
};

class RefTest : public ::testing::Test {
 protected:
  Ref<Object> New() { return Ref<Object>::Adopt(new Object(disposed_)); }

  int disposed_ = 0;
  HandleTable<Object, 2> table_;
};

TEST_F(RefTest, an_object_ends_with_its_last_reference) {
  Ref<Object> first = New();
  {
    Ref<Object> second = first;
    first = Ref<Object>();
    EXPECT_EQ(disposed_, 0);
    Ref<Object> third = std::move(second);
    EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move): it is empty then
    EXPECT_EQ(disposed_, 0);
  }
  EXPECT_EQ(disposed_, 1);
}

TEST_F(RefTest, a_reference_that_is_assigned_to_itself_stays) {
  Ref<Object> object = New();
  Ref<Object>& same = object;
  object = same;
  EXPECT_EQ(disposed_, 0);
  EXPECT_EQ(object->references, 1u);
}

TEST_F(RefTest, a_table_keeps_its_objects_and_gives_them_by_handle) {
  uint64_t handle = 0;
  {
    Ref<Object> object = New();
    handle = table_.Add(object);
    EXPECT_EQ(table_.Get(handle).get(), object.get());
  }
  EXPECT_EQ(disposed_, 0);
  EXPECT_TRUE(table_.Remove(handle));
  EXPECT_EQ(disposed_, 1);
}

TEST_F(RefTest, stale_and_invented_handles_and_those_of_other_tables_find_nothing) {
  const uint64_t stale = table_.Add(New());
  table_.Remove(stale);
  const uint64_t handle = table_.Add(New());
  EXPECT_NE(handle, stale);
  HandleTable<Object, 3> other;
  const uint64_t foreign = other.Add(New());
  for (const uint64_t wrong : {stale, foreign, handle + 1, uint64_t{0}, UINT64_MAX}) {
    EXPECT_FALSE(table_.Get(wrong)) << wrong;
    EXPECT_FALSE(table_.Remove(wrong)) << wrong;
    EXPECT_FALSE(table_.WasConsumed(wrong)) << wrong;
  }
  EXPECT_TRUE(table_.Get(handle));
  table_.Remove(handle);
  other.Remove(foreign);
}

TEST_F(RefTest, a_handle_is_never_given_twice) {
  std::set<uint64_t> given;
  for (int i = 0; i < 100; ++i) {
    const uint64_t handle = table_.Add(New());
    EXPECT_TRUE(given.insert(handle).second);
    table_.Remove(handle);
  }
}

TEST_F(RefTest, a_consumed_handle_is_told_from_one_that_was_removed) {
  const uint64_t removed = table_.Add(New());
  const uint64_t consumed = table_.Add(New());
  table_.Remove(removed);
  EXPECT_TRUE(table_.Consume(consumed));
  EXPECT_FALSE(table_.Consume(consumed));
  EXPECT_TRUE(table_.WasConsumed(consumed));
  EXPECT_FALSE(table_.WasConsumed(removed));
  const uint64_t next = table_.Add(New());
  EXPECT_FALSE(table_.WasConsumed(next)) << "the slot's next one is not";
  table_.Remove(next);
}

}  // namespace
}  // namespace xsched::preempt
