// Runs work in a child process, so that a crash or a hang there does not affect this one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch_environment.h"

namespace xsched::cli {

// Returns what `work` returned in the child. nullopt: it crashed, took too long, or could not be started. The
// child ends without running destructors or exit handlers.
std::optional<std::string> InChild(const std::function<std::string()>& work);

// Returns the standard output of the program command[0], which is a path. The output is incomplete if the
// program crashed or took too long.
std::string OutputOf(const std::vector<std::string>& command, const std::vector<Variable>& environment);

// Why a library cannot be loaded; empty: it can.
std::string LoadProblem(const std::string& library);

}  // namespace xsched::cli
