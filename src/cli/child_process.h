// Work done in a child process, so that what crashes or hangs there hurts nobody here.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace xsched::cli {

// What `work` returned in the child; nullopt: it crashed, took too long, or could not be started. The child
// ends without running destructors or exit handlers.
std::optional<std::string> InChild(const std::function<std::string()>& work);

// Why a library cannot be loaded; empty: it can.
std::string LoadProblem(const std::string& library);

}  // namespace xsched::cli
