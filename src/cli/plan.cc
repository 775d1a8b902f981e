// xsched plan: the test plan for this machine's GPU. The plan is a Python program (plan/), which replaces
// this process.
#include <filesystem>

#include "cli/become.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/locations.h"

namespace xsched::cli {
namespace {

void Plan(const std::vector<std::string>& options) {
  std::optional<std::string> script = FindShared("plan/run.py");
  if (!script) throw CommandError(kExitFailed, "the test plan is not installed (share/xsched/plan)");
  // It tests this installation of XSched. The user's python3 is the one that has PyTorch.
  std::vector<std::string> words = {"python3", *script, "--bin",
                                    std::filesystem::read_symlink("/proc/self/exe").parent_path().string()};
  words.insert(words.end(), options.begin(), options.end());
  Become(words);
}

}  // namespace

void AddPlan(CLI::App& app) {
  CLI::App* plan = app.add_subcommand("plan", "test XSched on this machine's GPU, step by step");
  // All options, --help included, are passed to the plan.
  plan->set_help_flag();
  plan->prefix_command();
  plan->callback([plan] { Plan(plan->remaining()); });
}

}  // namespace xsched::cli
