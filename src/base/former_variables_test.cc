#include "base/former_variables.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace xsched {
namespace {

TEST(FormerVariables, each_says_what_to_do_instead) {
  EXPECT_STREQ(InsteadOfFormerVariable("CUXTRA_CUDA_LIB"), "use XSCHED_CUDA_LIB");
  EXPECT_EQ(InsteadOfFormerVariable("XSCHED_CUDA_LIB"), nullptr);
}

TEST(FormerVariables, one_that_is_set_is_one_warning) {
  setenv("CUXTRA_CUDA_LIB", "/lib/libcuda.so.1", 1);
  setenv("XSCHED_CUDA_LV3_IMPL", "", 1);  // as unset
  testing::internal::CaptureStderr();
  WarnOfFormerVariables();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "xsched: CUXTRA_CUDA_LIB has no effect any more: use XSCHED_CUDA_LIB\n");
}

}  // namespace
}  // namespace xsched
