// Keeps NVIDIA's Multi-Process Service (MPS) running while programs use it, and ends it after the last one.
#pragma once

#include <string>
#include <vector>

#include "cli/launch_environment.h"

namespace xsched::cli::cuda {

inline constexpr const char* kMpsControl = "nvidia-cuda-mps-control";

// The service of one user, and how it is asked.
struct Mps {
  std::string control;  // the path of nvidia-cuda-mps-control
  std::string folder;   // of its sockets and logs, and of the two files below
  std::vector<Variable> variables;  // by which programs find it

  // Each user holds a shared lock of the first; the keeper holds an exclusive one of the second.
  std::string UsersFile() const { return folder + "/users"; }
  std::string KeeperFile() const { return folder + "/keeper"; }

  // What the service answers; empty: nothing, or it does not run.
  std::string Ask(const std::string& command) const;
  void Start() const;
  bool Answers() const;
  bool HasPrograms() const;
};

// Returns when the service is not needed any more and has ended, or at once if another process keeps it. If the
// service ends by itself, it is started again, for the next programs. If this process is killed, the next
// keeper takes over.
void Keep(const Mps& mps);

}  // namespace xsched::cli::cuda
