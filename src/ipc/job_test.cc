#include "ipc/job.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>

namespace xsched::ipc {
namespace {

using Environment = std::map<std::string, std::string>;

// The job of a process with this environment.
uint64_t JobWith(const Environment& environment) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const uint64_t job = JobOfThisProcess();
  for (const auto& [name, value] : environment) unsetenv(name.c_str());
  return job;
}

class Launched : public testing::Test {
 protected:
  Launched() {
    for (const char* name : {"XSCHED_JOB", "WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"})
      unsetenv(name);
  }
};

Environment Torch(const std::string& rank, const std::string& port) {
  return {{"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", port}};
}
Environment Srun(const std::string& rank, const std::string& step, const std::string& tasks = "2") {
  return {{"SLURM_PROCID", rank},
          {"SLURM_STEP_NUM_TASKS", tasks},
          {"SLURM_JOB_ID", "7"},
          {"SLURM_STEP_ID", step}};
}
Environment Mpirun(const std::string& rank, const std::string& job) {
  return {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", job}};
}

TEST_F(Launched, a_process_that_nobody_has_launched_as_a_rank_has_no_job) {
  EXPECT_EQ(JobWith({}), 0u);
  EXPECT_EQ(JobWith({{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}}), 0u) << "of nobody knows what";
}

TEST_F(Launched, ranks_of_one_launch_are_one_job_and_those_of_another_launch_are_another) {
  EXPECT_NE(JobWith(Torch("0", "29500")), 0u);
  EXPECT_EQ(JobWith(Torch("0", "29500")), JobWith(Torch("1", "29500")));
  EXPECT_NE(JobWith(Torch("0", "29500")), JobWith(Torch("0", "29501")));
  EXPECT_EQ(JobWith(Srun("0", "3")), JobWith(Srun("1", "3")));
  EXPECT_NE(JobWith(Srun("0", "3")), JobWith(Srun("0", "4")));
  EXPECT_EQ(JobWith(Mpirun("0", "prterun-1@1")), JobWith(Mpirun("1", "prterun-1@1")));
  EXPECT_NE(JobWith(Mpirun("0", "prterun-1@1")), JobWith(Mpirun("0", "prterun-2@1")));
}

// A shell that srun has started runs programs that have nothing to do with each other.
TEST_F(Launched, the_only_task_of_a_launch_is_no_rank) { EXPECT_EQ(JobWith(Srun("0", "3", "1")), 0u); }

TEST_F(Launched, the_variable_of_xsched_says_more_than_the_launcher) {
  Environment both = Torch("0", "29500");
  both["XSCHED_JOB"] = "training";
  EXPECT_EQ(JobWith(both), JobWith({{"XSCHED_JOB", "training"}}));
}

TEST_F(Launched, the_name_is_the_one_that_xsched_run_passes_on) {
  const Environment rank = Torch("0", "29500");
  for (const auto& [name, value] : rank) setenv(name.c_str(), value.c_str(), 1);
  const std::string passed_on = LaunchedJob().text;
  for (const auto& [name, value] : rank) unsetenv(name.c_str());
  EXPECT_EQ(passed_on, "torch:localhost:29500");
  EXPECT_EQ(JobWith({{"XSCHED_JOB", passed_on}}), JobWith(rank));
}

}  // namespace
}  // namespace xsched::ipc
