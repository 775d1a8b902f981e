#include "ipc/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"

namespace xsched::ipc {
namespace {

// Variables that a launcher sets in each rank's environment.
struct Launcher {
  const char* name;
  const char* ranks;  // how many there are
  const char* job;   // these are the same in all ranks of a job, and in no other job (of a network namespace)
  const char* part;  // likewise; null: none
};

constexpr Launcher kLaunchers[] = {
    // torchrun, DeepSpeed, Accelerate, Lightning, and whatever else uses torch.distributed's env://
    {"torch", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", nullptr},
};

bool HasLaunched(const Launcher& launcher) {
  const char* ranks = EnvText(launcher.ranks);
  return ranks != nullptr && atoi(ranks) > 1 && EnvText(launcher.job) != nullptr &&
         (launcher.part == nullptr || EnvText(launcher.part) != nullptr);
}

bool IsLoopback(const char* address) {
  return strcmp(address, "localhost") == 0 || strncmp(address, "127.", 4) == 0 ||
         strcmp(address, "::1") == 0 || strcmp(address, "[::1]") == 0;
}

// A loopback address is another one in each network namespace: two containers may both have a job with the
// same address and port. Appends "@net:[4026531840]", as the kernel names this process's namespace.
void AppendNetwork(JobName& name) {
  char network[64];
  const ssize_t length = readlink("/proc/self/ns/net", network, sizeof network - 1);
  if (length <= 0) return;  // no /proc
  network[length] = '\0';
  const size_t end = strlen(name.text);
  snprintf(name.text + end, sizeof name.text - end, "@%s", network);
}

}  // namespace

JobName LaunchedJob() {
  JobName name;
  for (const Launcher& launcher : kLaunchers) {
    if (!HasLaunched(launcher)) continue;
    snprintf(name.text, sizeof name.text, "%s:%s%s%s", launcher.name, EnvText(launcher.job),
             launcher.part == nullptr ? "" : ":", launcher.part == nullptr ? "" : EnvText(launcher.part));
    if (IsLoopback(EnvText(launcher.job))) AppendNetwork(name);
    break;
  }
  return name;
}

uint64_t JobOfThisProcess() {
  const char* name = EnvText("XSCHED_JOB");
  return JobNumber(name != nullptr ? name : LaunchedJob().text);
}

}  // namespace xsched::ipc
