// Work done in a child process, so that what crashes or hangs there hurts nobody here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch_environment.h"

namespace xsched::cli {

// What `work` returned in the child; nullopt: it crashed, took too long, or could not be started. The child
// ends without running destructors or exit handlers.
std::optional<std::string> InChild(const std::function<std::string()>& work);

// What the program command[0], a path, printed on its standard output. Cut off if it crashed or took too
// long.
std::string OutputOf(const std::vector<std::string>& command, const std::vector<Variable>& environment);

// Why a library cannot be loaded; empty: it can.
std::string LoadProblem(const std::string& library);

}  // namespace xsched::cli
