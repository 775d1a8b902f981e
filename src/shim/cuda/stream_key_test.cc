#include "shim/cuda/platform.h"

#include <gtest/gtest.h>

#include <set>

namespace xsched::cuda {
namespace {

// Two contexts and two streams, with typical handles of drivers: addresses of objects on the heap.
constexpr uint64_t kContext = 0x555555d0c0a0;
constexpr uint64_t kOtherContext = 0x555555d0d140;

TEST(StreamKey, the_null_stream_is_what_the_function_is_compiled_for) {
  EXPECT_EQ(ActualStream<false>(nullptr), CU_STREAM_LEGACY);
  EXPECT_EQ(ActualStream<true>(nullptr), CU_STREAM_PER_THREAD);
}

TEST(StreamKey, an_explicit_stream_is_itself_in_either) {
  auto stream = reinterpret_cast<CUstream>(kContext);
  EXPECT_EQ(ActualStream<false>(stream), stream);
  EXPECT_EQ(ActualStream<true>(stream), stream);
  EXPECT_EQ(ActualStream<true>(CU_STREAM_LEGACY), CU_STREAM_LEGACY);
  EXPECT_EQ(ActualStream<false>(CU_STREAM_PER_THREAD), CU_STREAM_PER_THREAD);
}

TEST(StreamKey, default_streams_have_keys_that_no_handle_is) {
  constexpr uint64_t kEndOfUserSpace = uint64_t{1} << 48;
  EXPECT_GE(LegacyStreamKey(kContext), kEndOfUserSpace);
  EXPECT_GE(PerThreadStreamKey(kContext, 1), kEndOfUserSpace);
}

TEST(StreamKey, each_context_and_each_thread_has_default_streams_of_its_own) {
  std::set<uint64_t> keys = {LegacyStreamKey(kContext), LegacyStreamKey(kOtherContext)};
  constexpr uint64_t kThreads = 100000;
  for (uint64_t thread = 1; thread <= kThreads; ++thread) {
    keys.insert(PerThreadStreamKey(kContext, thread));
    keys.insert(PerThreadStreamKey(kOtherContext, thread));
  }
  EXPECT_EQ(keys.size(), 2 + 2 * kThreads);
}

}  // namespace
}  // namespace xsched::cuda
