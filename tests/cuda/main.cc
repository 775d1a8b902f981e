#include <gtest/gtest.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  // The shim reads it at the first command.
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", XSCHED_TEST_SCHEDULER, 1);
  setenv("STANDIN_CUDA_DEVICES", "2", 1);
  setenv("STANDIN_CUDA_CONTROL", "/dev/null", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
