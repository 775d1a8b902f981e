#include "platforms/cuda/shared_context.h"

#include <fmt/format.h>

#include <sstream>

#include "base/trusted_socket.h"
#include "cli/doctor/child_process.h"
#include "cli/exit_codes.h"
#include "cli/locations.h"
#include "cli/programs/kept_service.h"

namespace xsched::cli::cuda {
namespace {

constexpr const char* kControl = "nvidia-cuda-mps-control";
constexpr const char* kPipeFolder = "CUDA_MPS_PIPE_DIRECTORY";
constexpr const char* kLogFolder = "CUDA_MPS_LOG_DIRECTORY";
constexpr const char* kUsualSocket = "/tmp/nvidia-mps/control";  // of a service for all users
// Written before an answer, so that an empty answer is known from none.
constexpr const char* kAnswered = "answered";

bool IsNumber(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

class Mps final : public Service {
 public:
  // `control`: the path of nvidia-cuda-mps-control. `variables`: by which it finds the service.
  Mps(std::string control, std::vector<Variable> variables)
      : control_(std::move(control)), variables_(std::move(variables)) {}

  // The service outlives the shell, and so it must not have the pipe of the shell's output. The shell has it
  // until the service has started.
  void Start() const override { Shell("\"$1\" -d >&2; echo", ""); }
  bool Answers() const override { return !Ask("get_server_list").empty(); }
  bool HasPrograms() const override {
    std::istringstream servers(Ask("get_server_list"));
    for (std::string server; servers >> server;) {
      if (!IsNumber(server)) continue;
      std::istringstream programs(Ask("get_client_list " + server));
      for (std::string program; programs >> program;) {
        if (IsNumber(program)) return true;
      }
    }
    return false;
  }
  void End() const override { Ask("quit"); }

 private:
  std::string Shell(const std::string& script, const std::string& argument) const {
    return OutputOf({"/bin/sh", "-c", script, "sh", control_, argument}, variables_);
  }
  // Empty: the service does not run.
  std::string Ask(const std::string& command) const {
    const std::string answer =
        Shell(fmt::format("answer=$(echo \"$2\" | \"$1\") && echo {} $answer", kAnswered), command);
    return answer.starts_with(kAnswered) ? answer : "";
  }

  std::string control_;
  std::vector<Variable> variables_;
};

}  // namespace

std::vector<Variable> ShareContext(const std::string& folder) {
  if (!CurrentVariable(kPipeFolder).empty() || IsTrustedSocket(kUsualSocket)) return {};
  const std::optional<std::string> control = FindInPath(kControl);
  if (!control)
    throw CommandError(kExitFailed, fmt::format("{} is not in PATH (NVIDIA's driver has it)", kControl));
  std::vector<Variable> variables = {{kPipeFolder, folder}, {kLogFolder, folder}};
  UseService(Mps(*control, variables), folder);
  return variables;
}

}  // namespace xsched::cli::cuda
