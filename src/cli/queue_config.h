// xsched config --queue: changes the level and the launch config of running queues, as XSched 1.2's xcli
// does.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace xsched::cli {

// Adds the options to `config`. Returns what to call when the command runs: true if they were used.
std::function<bool()> AddQueueConfig(CLI::App& config);

}  // namespace xsched::cli
