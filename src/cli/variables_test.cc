#include "cli/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Problems(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return EnvironmentProblems(environment.data());
}

TEST(Variables, that_are_right_or_not_ours_or_empty_are_no_problem) {
  EXPECT_THAT(Problems({"XSCHED_SCHEDULER=glb", "XSCHED_AUTO_XQUEUE=on", "XSCHED_AUTO_XQUEUE_PRIORITY=-256",
                        "XSCHED_AUTO_XQUEUE_LEVEL=", "XSCHED_POLICY=UP", "HOME=/", "PATH", "XSCHED_LOG=warn",
                        "LD_PRELOAD=libname.so"}),
              IsEmpty());
}

TEST(Variables, out_of_their_range_are_named_with_it) {
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQUEUE_PRIORITY=256"}),
              ElementsAre("XSCHED_AUTO_XQUEUE_PRIORITY=256 is not a whole number from -256 to 255"));
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQUEUE_THRESHOLD=4x"}),
              ElementsAre("XSCHED_AUTO_XQUEUE_THRESHOLD=4x is not a whole number from 1"));
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQUEUE_DEADLINE=99999999999999999999"}).size(), 1);
}

TEST(Variables, a_batch_is_at_most_the_threshold_as_programs_take_it) {
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQUEUE_BATCH_SIZE=16"}), IsEmpty());
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQUEUE_BATCH_SIZE=20"}),
              ElementsAre("XSCHED_AUTO_XQUEUE_BATCH_SIZE=20 is not a whole number from 1 to 16"));
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQUEUE_BATCH_SIZE=20", "XSCHED_AUTO_XQUEUE_THRESHOLD=20"}), IsEmpty());
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQUEUE_BATCH_SIZE=4", "XSCHED_AUTO_XQUEUE_THRESHOLD=2"}),
              ElementsAre("XSCHED_AUTO_XQUEUE_BATCH_SIZE=4 is not a whole number from 1 to 2"));
}

TEST(Variables, with_a_word_that_they_do_not_take_are_named_with_those_they_do) {
  EXPECT_THAT(Problems({"XSCHED_SCHEDULER=GLOBAL"}),
              ElementsAre("XSCHED_SCHEDULER=GLOBAL is none of GLB LCL APP"));
  EXPECT_THAT(Problems({"XSCHED_SCHEDULER=GLB LCL"}).size(), 1);
}

TEST(Variables, name_policies_and_chains_of_them) {
  EXPECT_THAT(Problems({"XSCHED_POLICY=hpf/CFS:process"}), IsEmpty());
  EXPECT_THAT(Problems({"XSCHED_POLICY=HPF/NONE"}),
              ElementsAre(HasSubstr("there is no policy NONE (there are ")));
  EXPECT_THAT(Problems({"XSCHED_POLICY=HPF:device"}),
              ElementsAre(HasSubstr("by queue, by process or by tenant, not by device")));
}

TEST(Variables, that_nothing_reads_are_named_because_they_may_be_misspelled) {
  EXPECT_THAT(Problems({"XSCHED_AUTO_XQEUE=ON"}), ElementsAre("XSCHED_AUTO_XQEUE is not read by anything"));
}

TEST(Variables, of_1_2_that_nothing_reads_are_named_with_what_to_do_instead) {
  EXPECT_THAT(Problems({"CUXTRA_CUDA_LIB=/lib/libcuda.so.1", "XSCHED_CUDART_LIB="}),
              ElementsAre("CUXTRA_CUDA_LIB has no effect any more: use XSCHED_CUDA_LIB"));
}

TEST(Variables, name_files_that_can_be_read) {
  EXPECT_THAT(Problems({"OPENCL_LAYERS=/proc/self/exe:/nowhere/layer.so"}),
              ElementsAre(HasSubstr("/nowhere/layer.so")));
  EXPECT_THAT(Problems({"XSCHED_OPENCL_LIB=/proc/self/exe"}), IsEmpty());
}

TEST(Variables, a_path_that_is_too_long_for_a_socket_is_known_before_it_is_tried) {
  std::string longest = "XSCHED_SOCKET=/" + std::string(106, 's');
  EXPECT_THAT(Problems({longest.c_str()}), IsEmpty());
  longest += "s";
  EXPECT_THAT(Problems({longest.c_str()}).size(), 1);
}

}  // namespace
}  // namespace xsched::cli
