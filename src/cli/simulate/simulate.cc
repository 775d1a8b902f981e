// xsched simulate: what each policy would make of a load.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/commands.h"
#include "cli/input_file.h"
#include "cli/json_text.h"
#include "cli/locations.h"
#include "cli/output_file.h"
#include "cli/simulate/device_file.h"
#include "cli/simulate/load_file.h"
#include "cli/simulate/outcome.h"
#include "cli/simulate/page.h"
#include "cli/simulate/report.h"
#include "cli/simulate/target.h"
#include "cli/validators.h"
#include "cli/warn.h"
#include "server/policy_names.h"

namespace xsched::cli {
namespace {

using Seconds = std::chrono::duration<double>;

// Of those that a search tried and that meet the target, as many are shown at most.
constexpr size_t kShown = 10;

struct SimulateOptions {
  std::vector<std::string> files;
  std::vector<std::string> policies;
  std::string device;
  std::string tenants;
  std::optional<double> seconds;
  double warm_up = 0;
  std::optional<size_t> at_a_time;
  bool json = false;
  std::string html;
  std::string target_text;
  std::optional<Target> target;
  std::string maximize;
};

// A file, or the name of a load that comes with XSched.
std::string FindLoad(const std::string& name) {
  const bool is_folder = std::filesystem::is_directory(name);
  if (std::filesystem::exists(name) && !is_folder) return name;
  const std::optional<std::string> shared = FindShared("examples/loads/" + name + ".xrec");
  if (!shared)
    throw CommandError(kExitFailed, fmt::format("{}: {}, and no such load", name,
                                                is_folder ? "this is a folder" : "there is no such file"));
  return *shared;
}

std::optional<Duration> Time(std::optional<double> seconds) {
  if (!seconds) return std::nullopt;
  return std::chrono::duration_cast<Duration>(Seconds(*seconds));
}

sched::sim::Load ReadLoad(const SimulateOptions& options, LoadReader& reader) {
  for (const std::string& name : options.files) {
    const std::string path = FindLoad(name);
    std::ifstream file = OpenInput(path);
    reader.Read(file, path);
  }
  std::optional<sched::sim::DeviceParameters> device;
  if (!options.device.empty()) device = ReadDevice(options.device);
  sched::sim::Load load = reader.Finish(Time(options.seconds), device);
  if (options.tenants.empty()) return load;
  Result<server::TenantRules> rules = server::ReadTenantRules(options.tenants, /*must_exist=*/true);
  if (!rules) throw CommandError(kExitFailed, rules.error().text());
  SetRights(load, *rules);
  return load;
}

std::vector<Outcome> Outcomes(const SimulateOptions& options, const sched::sim::Load& load) {
  std::vector<Scheme> schemes;
  for (const std::string& name : options.policies) schemes.push_back(SchemeByName(name));
  if (schemes.empty()) {
    schemes = AllSchemes();
    const std::vector<Scheme> chains = options.target ? NaturalChains() : std::vector<Scheme>{};
    schemes.insert(schemes.end(), chains.begin(), chains.end());
  }
  if (options.at_a_time) {
    for (Scheme& scheme : schemes) scheme = WithAtATime(scheme, *options.at_a_time);
  }
  const Duration warm_up = *Time(options.warm_up);
  if (warm_up >= load.length) {
    throw CommandError(kExitUsage, fmt::format("the load ends after {:.3f} s, within the warm-up",
                                               Seconds(load.length).count()));
  }
  const bool for_page = !options.html.empty();
  if (options.target) return Search(load, schemes, *options.target, options.maximize, warm_up, for_page);
  return PredictAll(load, schemes, warm_up, for_page);
}

// What was recorded stands above what is predicted.
void AddRecorded(const sched::sim::Load& load, const std::vector<std::vector<RecordedBurst>>& bursts,
                 const SimulateOptions& options, std::vector<Outcome>& outcomes) {
  const auto is_recorded = [](const std::vector<RecordedBurst>& queue) { return !queue.empty(); };
  if (std::any_of(bursts.begin(), bursts.end(), is_recorded))
    outcomes.insert(outcomes.begin(),
                    RecordedOutcome(load, bursts, *Time(options.warm_up), !options.html.empty()));
}

void Simulate(const SimulateOptions& options) {
  OutputFile page;
  if (!options.html.empty()) page.Reserve(options.html, /*is_named=*/true, kEverybody);
  LoadReader reader;
  const sched::sim::Load load = ReadLoad(options, reader);
  for (const std::string& warning : reader.warnings()) Warn(warning);
  if (load.queues.empty()) throw CommandError(kExitFailed, "the load has no queue");
  std::vector<Outcome> outcomes = Outcomes(options, load);
  const bool searched = options.target.has_value();
  if (!searched) AddRecorded(load, reader.recorded(), options, outcomes);
  const bool met = searched && options.target->IsMet(outcomes.front());
  const size_t tried = outcomes.size();
  if (searched) {
    const auto is_met = [&](const Outcome& outcome) { return options.target->IsMet(outcome); };
    const auto missed = std::find_if_not(outcomes.begin(), outcomes.end(), is_met);  // those behind as well
    const auto shown = std::clamp<std::ptrdiff_t>(missed - outcomes.begin(), 1, kShown);
    outcomes.erase(outcomes.begin() + std::min(shown, std::ssize(outcomes)), outcomes.end());
  }
  if (options.json) {
    fmt::print("{}\n", JsonText(OutcomesJson(outcomes)));
  } else {
    fmt::print("{}", OutcomesText(outcomes));
    if (met) {
      fmt::print("\nbest of {} tried: {}, with {:.1f} % of the device's time for {}\n", tried,
                 outcomes.front().scheme.name, outcomes.front().Find(options.maximize)->share * 100,
                 options.maximize);
    }
  }
  if (!options.html.empty()) {
    page.Begin();
    page << Page(outcomes);
    page.Close();
  }
  if (searched && !met) {
    const bool has_tasks = options.target->HasTasks(outcomes.front());
    throw CommandError(
        kExitFailed,
        fmt::format("none of {} tried meets the target {}; {}", tried, options.target_text,
                    has_tasks ? fmt::format("the nearest is {}", outcomes.front().scheme.name)
                              : fmt::format("{} ends no task under any of them", options.target->queue)));
  }
}

}  // namespace

void AddSimulate(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* simulate = app.add_subcommand("simulate", "predict what policies make of a load");
  simulate
      ->add_option("files", options->files, "loads: of xsched record, by hand, or the name of a shipped one")
      ->required()
      ->type_name("FILE");
  simulate->add_option("--policy", options->policies, "policies, native or FIFO; all of them by default")
      ->delimiter(',');
  simulate
      ->add_option(
          "--k", options->at_a_time,
          fmt::format("how many queues run at a time ({})", server::ReadBy(&sched::HintsRead::at_a_time)))
      ->check(CLI::Range(size_t{1}, sched::kMostAtATime));
  simulate->add_option("--device", options->device, "a file with the device's parameters")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  simulate
      ->add_option(
          "--tenants", options->tenants,
          "a tenants' file: the shares and the highest priorities of the tenants that the load names")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  simulate->add_option("--seconds", options->seconds, "how long the load goes on")
      ->transform(TimeInSeconds());
  simulate->add_option("--warm-up", options->warm_up, "seconds at the beginning that do not count")
      ->check(Between(0.0, 1e6));
  simulate->add_flag("--json", options->json, "as JSON");
  simulate->add_option("--html", options->html, "also write a page with plots to this file")
      ->type_name("FILE");
  auto* target =
      simulate->add_option("--target", options->target_text, "find how to meet it: \"serve p99 < 5 ms\"");
  auto* maximize = simulate->add_option("--maximize", options->maximize,
                                        "with --target: the queue that gets as much as possible");
  target->needs(maximize);
  maximize->needs(target);
  simulate->callback([options, target] {
    if (target->count() != 0) options->target = ParseTarget(options->target_text);
    Simulate(*options);
  });
}

}  // namespace xsched::cli
