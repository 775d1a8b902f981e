// This machine: runs experiments with programs on a device, natively and under a server of its own. What it
// started has ended when it is destroyed, also after a signal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/calibrate/experiment.h"
#include "cli/calibrate/work.h"
#include "cli/platform.h"
#include "cli/programs/background_program.h"
#include "cli/programs/stop_signals.h"
#include "cli/programs/workplace.h"

namespace xsched::cli {

class ProgramMachine final : public Machine {
 public:
  // Measures the kernel: nothing else should use the device. Throws CommandError, as Run does; both throw
  // Interrupted (programs/stop_signals.h).
  explicit ProgramMachine(const Platform& platform);

  const std::string& device_name() const { return facts_.name; }
  Observation Run(const Experiment& experiment) override;

 private:
  // A program and the file of its output.
  struct Program {
    std::unique_ptr<BackgroundProgram> process;
    std::string output;
  };

  void StartServer();
  Program Start(const WorkJob& job, bool scheduled);
  // Waits until the program has given so many answers (work.h), and returns them.
  std::vector<std::string> Answers(const Program& program, size_t count, Duration patience) const;
  int SetPriorities(const Program& program, const std::vector<QueueWork>& queues) const;

  StopSignals signals_;  // must be destroyed after the members that clean up
  Workplace place_{"calibrate"};
  const Platform& platform_;
  std::string self_;
  std::unique_ptr<BackgroundProgram> server_;
  int files_ = 0;
  DeviceFacts facts_;
};

}  // namespace xsched::cli
