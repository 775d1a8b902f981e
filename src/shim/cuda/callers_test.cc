#include "shim/cuda/callers.h"

#include <gtest/gtest.h>

namespace xsched::cuda {
namespace {

TEST(PassThrough, a_library_is_listed_by_its_name_or_the_beginning_of_it) {
  EXPECT_TRUE(IsListed("libnccl", "/usr/lib/libnccl.so.2"));
  EXPECT_TRUE(IsListed("libcufft.so.11", "libcufft.so.11"));
  EXPECT_TRUE(IsListed("libfirst.so,libsecond.so", "/opt/libsecond.so"));
  EXPECT_TRUE(IsListed("libfirst.so:libsecond.so", "/opt/libsecond.so"));
}

TEST(PassThrough, another_library_is_not) {
  EXPECT_FALSE(IsListed("libnccl", "/usr/lib/libcublas.so.12"));
  EXPECT_FALSE(IsListed("libnccl.so.2", "/usr/lib/libnccl.so.1"));
  EXPECT_FALSE(IsListed("nccl", "/usr/lib/libnccl.so.2")) << "a name is matched from its beginning";
}

TEST(PassThrough, folders_do_not_count) { EXPECT_FALSE(IsListed("nccl", "/opt/nccl/libother.so")); }

TEST(PassThrough, an_empty_name_lists_nothing) {
  EXPECT_FALSE(IsListed("", "/usr/lib/libany.so"));
  EXPECT_FALSE(IsListed(",, ", "/usr/lib/libany.so"));
}

TEST(PassThrough, the_program_itself_has_no_name) { EXPECT_FALSE(IsListed("lib", "")); }

}  // namespace
}  // namespace xsched::cuda
