#include "hal/hip/markers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "hal/hip/runtime.h"

namespace xsched::hip {
namespace {

// A stream that is full: the runtime blocks whoever records an event on it.
std::atomic<bool> is_recording{false};
std::atomic<bool> has_room{false};

constexpr uint64_t kTicketOfNoQueue = UINT64_MAX;

TEST(HipMarkers, a_poll_does_not_wait_for_a_thread_that_the_runtime_blocks) {
  Functions next{};
  next.hipEventCreateWithFlags = [](hipEvent_t* event, unsigned) {
    *event = reinterpret_cast<hipEvent_t>(1);
    return hipSuccess;
  };
  next.hipEventRecord = [](hipEvent_t, hipStream_t) {
    is_recording = true;
    while (!has_room) std::this_thread::yield();
    return hipSuccess;
  };
  next.hipEventQuery = [](hipEvent_t) { return hipErrorNotReady; };
  next.hipEventDestroy = [](hipEvent_t) { return hipSuccess; };
  Markers markers;
  std::thread appends([&] { EXPECT_TRUE(markers.Append(next, nullptr, kTicketOfNoQueue)); });
  while (!is_recording) std::this_thread::yield();
  std::thread polls([&] {
    EXPECT_FALSE(markers.AnyToPoll());
    markers.Poll(next);
    has_room = true;
  });
  polls.join();
  appends.join();
  EXPECT_TRUE(markers.AnyToPoll());
  markers.Drop(next);
}

}  // namespace
}  // namespace xsched::hip
