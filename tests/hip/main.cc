#include <gtest/gtest.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  // Before the shim looks: it does so at the first command.
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", XSCHED_TEST_SCHEDULER, 1);
  setenv("STANDIN_HSA_DEVICES", "2", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
