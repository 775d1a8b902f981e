#include "base/handle.h"

#include <gtest/gtest.h>

namespace xsched {
namespace {

TEST(Handle, has_the_parts_that_it_was_packed_from) {
  for (uint8_t kind : {0, 1, 255}) {
    for (uint32_t generation : {0u, 1u, 0xffffffu, 0xffffffffu}) {
      for (uint32_t index : {0u, 7u, kMaxHandleIndex}) {
        const uint64_t handle = PackHandle(kind, generation, index);
        EXPECT_EQ(HandleKind(handle), kind);
        EXPECT_EQ(HandleGeneration(handle), generation);
        EXPECT_EQ(HandleIndex(handle), index);
      }
    }
  }
}

TEST(Handle, that_is_none_has_an_index_that_nothing_has) {
  EXPECT_NE(PackHandle(0, 0, 0), 0u);
  EXPECT_GT(HandleIndex(0), kMaxHandleIndex);
}

// Servers and clients of several releases read it.
TEST(Handle, has_its_generation_where_the_protocol_says) {
  EXPECT_EQ(PackHandle(0x51, 0x01020304, 5), 0x5101020304000006u);
}

}  // namespace
}  // namespace xsched
