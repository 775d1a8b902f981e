#include "ipc/job.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <optional>
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

// Likewise, of one in a network namespace of its own. nullopt: this system gives none.
std::optional<uint64_t> JobInAnotherNetwork(const Environment& environment) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
      const uint64_t job = JobWith(environment);
      if (write(ends[1], &job, sizeof job) != sizeof job) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  uint64_t job = 0;
  const bool answered = read(ends[0], &job, sizeof job) == sizeof job;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return answered ? std::optional(job) : std::nullopt;
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

// torchrun's address and port, unless it is given others, are the same in each container.
TEST_F(Launched, a_loopback_address_means_another_job_in_another_network) {
  for (const char* address : {"localhost", "127.0.0.1", "::1"}) {
    Environment rank = Torch("0", "29500");
    rank["MASTER_ADDR"] = address;
    const std::optional<uint64_t> elsewhere = JobInAnotherNetwork(rank);
    if (!elsewhere) GTEST_SKIP() << "no network namespace can be made";
    EXPECT_NE(*elsewhere, JobWith(rank)) << address;
    EXPECT_NE(*elsewhere, 0u);
  }
}

TEST_F(Launched, the_address_of_a_host_and_a_name_that_was_given_mean_one_job_in_all_networks) {
  Environment rank = Torch("0", "29500");
  rank["MASTER_ADDR"] = "10.0.0.7";
  const Environment named = {{"XSCHED_JOB", "training"}};
  const std::optional<uint64_t> elsewhere = JobInAnotherNetwork(rank);
  if (!elsewhere) GTEST_SKIP() << "no network namespace can be made";
  EXPECT_EQ(*elsewhere, JobWith(rank));
  EXPECT_EQ(JobInAnotherNetwork(named), JobWith(named));
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
  EXPECT_TRUE(passed_on.starts_with("torch:localhost:29500@net:[")) << passed_on;
  EXPECT_EQ(JobWith({{"XSCHED_JOB", passed_on}}), JobWith(rank));
}

}  // namespace
}  // namespace xsched::ipc
