// What became of a job, for the end of `xsched run --report`. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/explain/process_waits.h"

namespace xsched::cli {

struct JobOutcome {
  std::vector<std::string> program;
  int status = 0;  // or minus the signal that ended it
  Duration length{};
  uint64_t job = 0;
  bool job_is_older = false;  // other programs belong to it as well
  Duration missing{};         // for how long nothing was recorded, and why
  std::string problem;
};

std::string ReportText(const JobOutcome& outcome, const ProcessWaits& waits);
nlohmann::ordered_json ReportJson(const JobOutcome& outcome, const ProcessWaits& waits);

}  // namespace xsched::cli
