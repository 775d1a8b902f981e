// Stands in for the programs of Slurm that load the plugin: the functions of SPANK over one job that a test
// describes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

extern "C" {
#include <slurm/spank.h>
}

namespace xsched::slurm::testing {

struct StandIn {
  spank_context_t context = S_CTX_REMOTE;
  std::map<std::string, std::string> environment;
  std::vector<std::string> odd_entries;  // further ones of its environment, which have no '='
  uint32_t job = 7;
  uint32_t step = 0;
  uint32_t node = 0;
  uint32_t tasks = 1;
  // What came of it.
  std::vector<spank_option> options;
  std::vector<std::string> to_user;
  std::vector<std::string> to_log;
  std::vector<std::string> errors;
};

// The one that the functions of SPANK are about. Each test makes a new one.
StandIn& ThisJob();
void NewJob();

}  // namespace xsched::slurm::testing
