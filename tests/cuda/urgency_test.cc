// The driver's stream priorities follow the hints.
#include <chrono>
#include <thread>

#include "fixture.h"

namespace xsched::cuda {
namespace {

class Urgency : public CudaProgram {
 protected:
  CUstream UsedStream(int priority) const {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority), CUDA_SUCCESS);
    EXPECT_EQ(Launch(stream), CUDA_SUCCESS);
    return stream;
  }
  XQueueHandle QueueOf(CUstream stream) const { return CudaProgram::QueueOf(stream, KeyOf(stream)); }
  static int PriorityOf(CUstream stream) {
    int priority = 99;
    EXPECT_EQ(cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
    return priority;
  }
  // Waits until the stream has this priority: a separate thread sets it in the driver.
  static bool Becomes(CUstream stream, int priority) {
    for (int i = 0; i < 2000 && PriorityOf(stream) != priority; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return PriorityOf(stream) == priority;
  }
};

TEST_F(Urgency, without_a_hint_a_stream_has_the_priority_that_the_program_gave_it) {
  EXPECT_EQ(PriorityOf(UsedStream(0)), 0);
  EXPECT_EQ(PriorityOf(UsedStream(-3)), -3);
}

TEST_F(Urgency, each_step_above_the_least_urgent_is_one_of_the_drivers_as_far_as_it_has_them) {
  CUstream other = UsedStream(0);
  CUstream stream = UsedStream(0);
  XQueueHandle queue = QueueOf(stream);
  for (const auto& [hint, priority] :
       {std::pair{2, -2}, {10, -5}, {PRIORITY_MAX, -5}, {-4, 0}, {1, -1}, {0, 0}}) {
    ASSERT_EQ(XHintPriority(queue, hint), kXSchedSuccess);
    EXPECT_EQ(PriorityOf(stream), priority) << "hint " << hint;
    EXPECT_EQ(PriorityOf(other), hint < 0 ? hint : 0) << "hint " << hint;
  }
}

TEST_F(Urgency, hints_count_from_the_priority_that_the_program_gave) {
  UsedStream(0);
  CUstream stream = UsedStream(-2);
  XQueueHandle queue = QueueOf(stream);
  for (const auto& [hint, priority] : {std::pair{1, -3}, {-1, -2}, {-10, -2}, {0, -2}}) {
    ASSERT_EQ(XHintPriority(queue, hint), kXSchedSuccess);
    EXPECT_EQ(PriorityOf(stream), priority) << "hint " << hint;
  }
}

TEST_F(Urgency, a_hint_for_all_streams_leaves_the_programs_order_as_it_is) {
  CUstream ordinary = UsedStream(0);
  CUstream urgent = UsedStream(-3);
  for (int hint : {5, 100, -5, 0}) {
    ASSERT_EQ(XHintPriority(QueueOf(ordinary), hint), kXSchedSuccess);
    ASSERT_EQ(XHintPriority(QueueOf(urgent), hint), kXSchedSuccess);
    EXPECT_EQ(PriorityOf(ordinary), 0) << "hint " << hint;
    EXPECT_EQ(PriorityOf(urgent), -3) << "hint " << hint;
  }
}

TEST_F(Urgency, the_programs_order_stays_among_those_that_are_hinted_alike) {
  UsedStream(0);
  CUstream ordinary = UsedStream(0);
  CUstream urgent = UsedStream(-3);
  ASSERT_EQ(XHintPriority(QueueOf(ordinary), 100), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(ordinary), -5);
  ASSERT_EQ(XHintPriority(QueueOf(urgent), 100), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(ordinary), -4);
  EXPECT_EQ(PriorityOf(urgent), -5);
}

TEST_F(Urgency, streams_that_come_and_go_count) {
  CUstream stream = UsedStream(0);
  ASSERT_EQ(XHintPriority(QueueOf(stream), 2), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), 0) << "there is no other";
  CUstream other = UsedStream(0);
  EXPECT_TRUE(Becomes(stream, -2));
  ASSERT_EQ(cuStreamDestroy_v2(other), CUDA_SUCCESS);
  EXPECT_TRUE(Becomes(stream, 0));
}

TEST_F(Urgency, any_thread_may_hint_also_for_the_default_stream) {
  UsedStream(0);
  ASSERT_EQ(Launch(CU_STREAM_LEGACY), CUDA_SUCCESS);
  XQueueHandle queue = CudaProgram::QueueOf(CU_STREAM_LEGACY, LegacyKey());
  std::thread([queue] { EXPECT_EQ(XHintPriority(queue, 1), kXSchedSuccess); }).join();
  EXPECT_EQ(PriorityOf(CU_STREAM_LEGACY), -1);
  ASSERT_EQ(XHintPriority(queue, 0), kXSchedSuccess);
}

TEST_F(Urgency, a_held_stream_can_be_hinted_and_keeps_its_work) {
  UsedStream(0);
  CUstream stream = UsedStream(0);
  XQueueHandle queue = QueueOf(stream);
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(XHintPriority(queue, 3), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), -3);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

TEST_F(Urgency, a_stream_that_captures_gets_its_priority_after_the_capture) {
  UsedStream(0);
  CUstream stream = UsedStream(0);
  XQueueHandle queue = QueueOf(stream);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  ASSERT_EQ(XHintPriority(queue, 3), kXSchedSuccess);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(PriorityOf(stream), 0);
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), -3);
}

}  // namespace
}  // namespace xsched::cuda
