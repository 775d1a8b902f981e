// xsched explain: why programs waited lately, in sentences.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/explain/explanation.h"
#include "cli/input_file.h"
#include "cli/record/recorder.h"
#include "cli/validators.h"
#include "server/empty_values.h"

namespace xsched::cli {
namespace {

struct ExplainOptions {
  std::vector<int32_t> pids;
  double last = 60;
  std::string recording;
};

ProcessWaits Read(const ExplainOptions& options) {
  ProcessWaits waits;
  if (options.recording.empty()) {
    std::stringstream remembered;
    if (WriteLast(FromSeconds(options.last), remembered) == Duration::zero())
      throw CommandError(kExitFailed, "the server remembers nothing of this time (xserver --history)");
    waits.Read(remembered, "the server's answer");
    return waits;
  }
  std::ifstream file = OpenInput(options.recording);
  waits.Read(file, options.recording);
  return waits;
}

void Explain(const ExplainOptions& options) {
  const ProcessWaits waits = Read(options);
  bool found = false;
  for (const auto& [number, process] : waits.processes()) {
    const auto& pids = options.pids;
    if (!pids.empty() && std::find(pids.begin(), pids.end(), process.pid) == pids.end()) continue;
    // Others waited for it, and that is said of them.
    if (pids.empty() && !HasRecords(process)) continue;
    if (std::exchange(found, true)) std::cout << '\n';
    std::cout << Explanation(waits, process);
  }
  if (waits.lost() != 0) fmt::print(stderr, "xsched: {} records are missing\n", waits.lost());
  if (waits.was_cut_off()) fmt::print(stderr, "xsched: the recording was cut off: it has no end\n");
  if (found) return;
  if (!options.pids.empty())
    throw CommandError(kExitFailed, "no such process of yours had to share a device in this time");
  std::cout << "No program had to share a device in this time.\n";
}

}  // namespace

void AddExplain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* explain =
      app.add_subcommand("explain", "why programs waited lately (your programs; all for administrators)");
  explain->add_option("--pid", options->pids, "only of these processes")->check(AboveZero());
  CLI::Option* last =
      explain
          ->add_option("--last", options->last,
                       "of the last so many seconds, as far as the server remembers them (60)")
          ->transform(TimeInSeconds())
          ->type_name("SECONDS");
  explain->add_option("--recording", options->recording, "not lately, but in what xsched record wrote")
      ->type_name("FILE")
      ->check(server::NotEmpty())
      ->excludes(last);
  explain->callback([options] { Explain(*options); });
}

}  // namespace xsched::cli
