// Finds the parts of this installation or build tree, relative to this program.
#pragma once

#include <optional>
#include <string>

namespace xsched::cli {

// A library of ours ("libpreempt.so"); empty: it is not installed.
std::optional<std::string> FindLibrary(const std::string& name);
// A program of ours ("xserver", "xsched-latency-task").
std::optional<std::string> FindProgram(const std::string& name);
// An architecture-independent file of ours, in share/xsched ("plan/run.py").
std::optional<std::string> FindShared(const std::string& name);
// A program in PATH.
std::optional<std::string> FindInPath(const std::string& name);

}  // namespace xsched::cli
