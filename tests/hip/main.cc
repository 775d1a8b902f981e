#include <gtest/gtest.h>
#include <stdlib.h>

#include "standin_hsa.h"

int main(int argc, char** argv) {
  // The shim reads it at the first command.
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", XSCHED_TEST_SCHEDULER, 1);
  setenv("STANDIN_HSA_DEVICES", "2", 1);
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  standin_hsa_await_handlers();
  return failed;
}
