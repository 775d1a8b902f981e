// xsched doctor's report on CUDA and HIP, over a stand-in driver and a software agent.
#include <dlfcn.h>
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/testing/tool.h"
#include "server/testing/server_process.h"

namespace xsched::cli::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A machine with two GPUs of each kind, and a resource manager for those of CUDA.
class Doctor : public ::testing::Test {
 protected:
  // Runs the doctor with the variables of `more` in addition.
  json Ask(Environment more, const std::vector<std::string>& program = {}) {
    more.merge(Environment{{"XSCHED_SOCKET", folder_.path() + "/xserver.sock"},
                           {"LD_LIBRARY_PATH", STANDIN_CUDA ":" STANDIN_HSA},
                           {"LD_PRELOAD", STANDIN_CUDA "/libfake_rm.so"},
                           {"STANDIN_CUDA_CONTROL", "/dev/null"},
                           {"STANDIN_CUDA_DEVICES", "2"},
                           {"CUDA_MPS_PIPE_DIRECTORY", folder_.path()},
                           {"STANDIN_HSA_DEVICES", "2"}});
    std::vector<std::string> arguments = {"doctor", "--json"};
    if (!program.empty()) arguments.push_back("--");
    arguments.insert(arguments.end(), program.begin(), program.end());
    return json::parse(RunXsched(arguments, more).out);
  }
  // "ok …", "problem …"
  static std::vector<std::string> Of(const std::string& about, const json& report) {
    std::vector<std::string> lines;
    for (const json& finding : report["findings"]) {
      if (finding["about"] != about) continue;
      lines.push_back(finding["kind"].get<std::string>() + " " + finding["text"].get<std::string>());
    }
    return lines;
  }
  std::vector<std::string> AskOfCuda(const Environment& more) { return Of("CUDA", Ask(more)); }
  std::vector<std::string> AskOfHip(const Environment& more) { return Of("HIP", Ask(more)); }

  server::testing::TempFolder folder_;
};

// ---- CUDA ----

TEST_F(Doctor, names_each_gpu_its_levels_and_the_route) {
  const std::vector<std::string> lines = AskOfCuda({});
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("ok shim"), HasSubstr("route: LD_PRELOAD"))));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("ok driver"), HasSubstr(", CUDA 13"))));
  EXPECT_THAT(lines, Contains(HasSubstr("preemption levels 1, 2 and 3")).Times(2));
}

TEST_F(Doctor, says_that_a_driver_without_a_resource_manager_has_no_level_3) {
  EXPECT_THAT(
      AskOfCuda({{"STANDIN_CUDA_CONTROL", "/nowhere"}}),
      Contains(AllOf(HasSubstr("levels 1 and 2; not 3: "), HasSubstr("no channel group seen"))).Times(2));
}

TEST_F(Doctor, says_that_there_is_no_level_3_under_mps) {
  std::ofstream(folder_.path() + "/control") << "";
  EXPECT_THAT(AskOfCuda({}), Contains(AllOf(HasSubstr("levels 1 and 2; not 3: "), HasSubstr("under MPS"))));
}

TEST_F(Doctor, tries_whether_a_gate_holds_a_stream) {
  EXPECT_THAT(
      AskOfCuda({{"STANDIN_CUDA_DEVICES", "1"}, {"STANDIN_CUDA_FAIL", "cuStreamBatchMemOp_v2:1:801"}}),
      Contains(AllOf(HasSubstr("problem "), HasSubstr("a suspended stream was not held"))));
}

TEST_F(Doctor, says_what_a_driver_that_finds_no_gpu_lacks) {
  const std::vector<std::string> lines = AskOfCuda({{"CUDA_VISIBLE_DEVICES", "-1"}});
  EXPECT_THAT(lines, Contains(HasSubstr("problem cuInit: CUDA_ERROR_NO_DEVICE")));
  if (access("/dev/nvidiactl", F_OK) != 0) {
    EXPECT_THAT(lines, Contains(HasSubstr("/dev/nvidiactl is not there")));
  }
}

TEST_F(Doctor, judges_a_program_by_the_platform_that_it_uses) {
  const json works = Ask({}, {CUDA_PROGRAM});
  EXPECT_THAT(Of("program", works), Contains(HasSubstr("links CUDA's driver")));
  const json fails = Ask({{"CUDA_VISIBLE_DEVICES", "-1"}}, {CUDA_PROGRAM});
  EXPECT_EQ(fails["scheduled"], false);
  EXPECT_THAT(Of("program", fails), Contains(HasSubstr("uses what is not scheduled here: CUDA: cuInit")));
  EXPECT_THAT(Of("program", works), Not(Contains(HasSubstr("not scheduled here"))));
}

// ---- HIP, with AMD's own runtime ----

class HipDoctor : public Doctor {
 protected:
  void SetUp() override {
    if (dlopen("libamdhip64.so", RTLD_LAZY) == nullptr) GTEST_SKIP() << "no HIP runtime is installed";
    if (access(STANDIN_HSA, F_OK) != 0) GTEST_SKIP() << "there were no HSA headers to build the agent with";
  }
};

TEST_F(HipDoctor, names_the_runtime_each_gpu_its_level_and_the_route) {
  const std::vector<std::string> lines = AskOfHip({});
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("ok shim"), HasSubstr("route: LD_PRELOAD"))));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("/libamdhip64.so"), HasSubstr("calls are caught"))));
  EXPECT_THAT(lines, Contains(HasSubstr("Software HSA agent: preemption level 1")).Times(2));
}

TEST_F(HipDoctor, says_how_levels_2_and_3_are_turned_on) {
  EXPECT_THAT(AskOfHip({}), Contains(AllOf(HasSubstr("preemption level 1; not 2: XSCHED_HIP_LEVEL=3"),
                                           HasSubstr("not been run on AMD hardware")))
                                .Times(2));
}

TEST_F(HipDoctor, tries_levels_2_and_3_where_they_are_on) {
  const std::vector<std::string> lines =
      AskOfHip({{"XSCHED_HIP_LEVEL", "3"}, {"LD_PRELOAD", STANDIN_KFD "/libfake_kfd.so"}});
  EXPECT_THAT(lines, Contains(HasSubstr("Software HSA agent: preemption levels 1, 2 and 3")).Times(2));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("note "), HasSubstr("have not been run on AMD hardware"))));
}

TEST_F(HipDoctor, says_why_level_1_is_left) {
  EXPECT_THAT(AskOfHip({{"XSCHED_HIP_LEVEL", "3"}}),
              Contains(AllOf(HasSubstr("preemption level 1; not 2: "), HasSubstr("no request to /dev/kfd")))
                  .Times(2));
  EXPECT_THAT(
      AskOfHip({{"XSCHED_HIP_LEVEL", "3"},
                {"LD_PRELOAD", STANDIN_KFD "/libfake_kfd.so"},
                {"FAKE_KFD_FAIL_UPDATE", std::to_string(EPERM)}}),
      Contains(AllOf(HasSubstr("preemption level 1; not 2: "), HasSubstr("suspending hardware queue 1")))
          .Times(2));
}

TEST_F(HipDoctor, says_what_a_runtime_that_finds_no_gpu_lacks) {
  const std::vector<std::string> lines = AskOfHip({{"HIP_VISIBLE_DEVICES", "-1"}});
  EXPECT_THAT(lines, Contains(HasSubstr("problem hipGetDeviceCount: hipErrorNoDevice")));
  if (access("/dev/kfd", F_OK) != 0) {
    EXPECT_THAT(lines, Contains(HasSubstr("/dev/kfd is not there")));
  }
}

}  // namespace
}  // namespace xsched::cli::testing
