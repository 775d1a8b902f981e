// Where the parts of this installation (or build tree) are, seen from this program.
#pragma once

#include <optional>
#include <string>

namespace xsched::cli {

// A library of ours ("libshimopencl.so"); empty: it is not installed.
std::optional<std::string> FindLibrary(const std::string& name);
// A program of ours ("xserver", "xsched-latency-task").
std::optional<std::string> FindProgram(const std::string& name);
// A file of ours that no architecture is in ("plan/run.py"): what share/xsched has.
std::optional<std::string> FindShared(const std::string& name);
// A program in PATH.
std::optional<std::string> FindInPath(const std::string& name);

}  // namespace xsched::cli
