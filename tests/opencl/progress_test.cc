// What XSched knows of a queue's progress by the program's own waits.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <future>
#include <thread>

#include "fake_driver.h"
#include "xqueues.h"

namespace xsched::testing {
namespace {

const cl_icd_dispatch& cl() { return FakeDriver::UnderTheShim(); }

void ReadBlocking(cl_command_queue queue) {
  char out = 0;
  EXPECT_EQ(cl().clEnqueueReadBuffer(queue, nullptr, CL_TRUE, 0, sizeof out, &out, 0, nullptr, nullptr),
            CL_SUCCESS);
}

TEST(Progress, a_blocking_command_shows_that_all_before_it_have_finished) {
  cl_command_queue queue = cl().clCreateCommandQueue(nullptr, nullptr, 0, nullptr);
  EXPECT_EQ(cl().clEnqueueTask(queue, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(StateOf(queue), kQueueStateReady);
  ReadBlocking(queue);
  EXPECT_EQ(StateOf(queue), kQueueStateIdle);
}

// Two threads launch on one queue. The first one's command reaches the driver after the second one's.
TEST(Progress, a_command_that_the_driver_gets_after_a_blocking_one_has_not_finished_with_it) {
  cl_command_queue queue = cl().clCreateCommandQueue(nullptr, nullptr, 0, nullptr);
  std::promise<void> launching;
  std::promise<void> go_on;
  FakeDriver::BeforeNextTask() = [&] {
    launching.set_value();
    go_on.get_future().wait();
  };
  std::thread first([&] { EXPECT_EQ(cl().clEnqueueTask(queue, nullptr, 0, nullptr, nullptr), CL_SUCCESS); });
  launching.get_future().wait();
  ReadBlocking(queue);
  go_on.set_value();
  first.join();
  EXPECT_EQ(StateOf(queue), kQueueStateReady);
}

}  // namespace
}  // namespace xsched::testing

int main(int argc, char** argv) {
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", "APP", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
