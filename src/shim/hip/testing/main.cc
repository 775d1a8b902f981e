#include <gtest/gtest.h>
#include <stdlib.h>

// Before XSched reads it.
int main(int argc, char** argv) {
  setenv("XSCHED_AUTO_XQUEUE", "1", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
