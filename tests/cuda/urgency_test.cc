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
  // In the driver.
  static int PriorityOf(CUstream stream) {
    int priority = 99;
    EXPECT_EQ(FindDriver()->cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
    return priority;
  }
  // As the program reads it. 99: in two ways.
  static int OwnPriorityOf(CUstream stream) {
    int priority = 99;
    CUstreamAttrValue value{};
    EXPECT_EQ(cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
    return value.priority == priority ? priority : 99;
  }
  static void SetPriority(CUstream stream, int priority) {
    CUstreamAttrValue value{};
    value.priority = priority;
    EXPECT_EQ(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
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

// ---- what the program sets and reads by itself ----

TEST_F(Urgency, the_program_reads_the_priority_that_it_gave) {
  UsedStream(0);
  CUstream stream = UsedStream(-1);
  ASSERT_EQ(XHintPriority(QueueOf(stream), 2), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), -3);
  EXPECT_EQ(OwnPriorityOf(stream), -1);
  SetPriority(stream, -2);
  EXPECT_EQ(OwnPriorityOf(stream), -2);
}

TEST_F(Urgency, a_priority_that_the_program_sets_is_in_force_without_hints) {
  UsedStream(0);
  CUstream stream = UsedStream(0);
  SetPriority(stream, -2);
  EXPECT_EQ(PriorityOf(stream), -2);
  ASSERT_EQ(XHintPriority(QueueOf(stream), 1), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), -3) << "hints count from it";
  ASSERT_EQ(XHintPriority(QueueOf(stream), 0), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), -2);
}

TEST_F(Urgency, hints_count_from_a_priority_that_the_program_sets_later) {
  UsedStream(0);
  CUstream stream = UsedStream(0);
  ASSERT_EQ(XHintPriority(QueueOf(stream), 1), kXSchedSuccess);
  SetPriority(stream, -2);
  EXPECT_TRUE(Becomes(stream, -3));
  SetPriority(stream, -1);
  EXPECT_TRUE(Becomes(stream, -2));
  ASSERT_EQ(XHintPriority(QueueOf(stream), 0), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), -1);
}

TEST_F(Urgency, a_priority_beyond_the_drivers_is_its_nearest) {
  UsedStream(0);
  CUstream stream = UsedStream(0);
  ASSERT_EQ(XHintPriority(QueueOf(stream), 1), kXSchedSuccess);
  SetPriority(stream, 7);
  EXPECT_EQ(OwnPriorityOf(stream), 0);
  SetPriority(stream, -100);
  EXPECT_EQ(OwnPriorityOf(stream), -5);
}

TEST_F(Urgency, a_streams_attributes_are_copied_as_the_program_set_them) {
  UsedStream(0);
  CUstream stream = UsedStream(-1);
  CUstream unused = NewStream();
  CUstream used = UsedStream(0);
  ASSERT_EQ(XHintPriority(QueueOf(stream), 3), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(stream), -4);
  for (CUstream copy : {unused, used}) {
    ASSERT_EQ(cuStreamCopyAttributes(copy, stream), CUDA_SUCCESS);
    EXPECT_EQ(PriorityOf(copy), -1);
    EXPECT_EQ(OwnPriorityOf(copy), -1);
  }
  ASSERT_EQ(XHintPriority(QueueOf(used), 1), kXSchedSuccess);
  EXPECT_EQ(PriorityOf(used), -2) << "hints count from it";
}

TEST_F(Urgency, the_priority_of_a_stream_that_has_no_queue_is_copied_too) {
  UsedStream(0);
  CUstream stream = UsedStream(0);
  CUstream unused = nullptr;
  ASSERT_EQ(cuStreamCreateWithPriority(&unused, CU_STREAM_NON_BLOCKING, -2), CUDA_SUCCESS);
  ASSERT_EQ(XHintPriority(QueueOf(stream), 1), kXSchedSuccess);
  ASSERT_EQ(cuStreamCopyAttributes(stream, unused), CUDA_SUCCESS);
  EXPECT_TRUE(Becomes(stream, -3));
  EXPECT_EQ(OwnPriorityOf(stream), -2);
}

}  // namespace
}  // namespace xsched::cuda
