// The options by which a program's queues get hints and launch configurations.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/launch_environment.h"

namespace xsched::cli {

void AddHintOptions(CLI::App& command, LaunchOptions& options);

// Throws CommandError if options contradict each other.
void CheckHintOptions(const LaunchOptions& options);

}  // namespace xsched::cli
