// xsched policy: shows and sets the server's policy.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/json_text.h"
#include "cli/policy_text.h"
#include "cli/server_session.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

struct PolicyOptions {
  std::string name;
  std::string by;
  int64_t timeslice_us = 0;
  uint32_t at_a_time = 0;
};

void Show(bool as_json) {
  const ipc::Status status = ServerSession().Status();
  if (as_json) {
    fmt::print("{}\n", JsonText({{"policy", PolicyText(status)},
                                 {"timeslice_us", status.timeslice_us},
                                 {"k", status.at_a_time}}));
    return;
  }
  fmt::print("policy {}, timeslice {} µs", PolicyText(status), status.timeslice_us);
  if (status.at_a_time > 1) fmt::print(", k {}", status.at_a_time);
  fmt::print("\n");
}

void List(bool as_json) {
  nlohmann::json all = nlohmann::json::array();
  for (sched::PolicyGetter policy : sched::Policies()) {
    const sched::PolicyInfo& info = policy().info();
    const char* by = sched::GranularityName(info.granularity);
    all.push_back({{"name", info.name},
                   {"number", info.type},
                   {"summary", info.summary},
                   {"by", by},
                   {"hints", server::NamesOfHints(info)}});
    if (!as_json)
      fmt::print("{:<5} {} (by {}; hints: {})\n", info.name, info.summary, by, server::NamesOfHints(info));
  }
  if (as_json) fmt::print("{}\n", JsonText(all));
}

sched::PolicySetting SettingOf(const PolicyOptions& options) {
  const sched::PolicySetting setting = server::SettingOrThrow(options.name);
  if (options.by.empty()) return setting;
  try {
    return server::SettingBy(setting, options.by);
  } catch (const std::runtime_error& error) {
    throw CommandError(kExitUsage, fmt::format("policy set: {}", error.what()));
  }
}

void Set(const PolicyOptions& options) {
  ServerSession server;
  ipc::SetPolicy request = PolicyRequest(server, SettingOf(options));
  request.timeslice_us = options.timeslice_us;
  request.at_a_time = options.at_a_time;
  if (options.at_a_time != 0) server.Require(kMinorOfChains, "to set k");
  server.SetPolicy(request);
  Show(/*as_json=*/false);
}

}  // namespace

void AddPolicy(CLI::App& app) {
  CLI::App* policy = app.add_subcommand("policy", "show or set the server's policy");
  policy->require_subcommand(0, 1);
  auto options = std::make_shared<PolicyOptions>();
  auto as_json = std::make_shared<bool>(false);
  CLI::App* show = policy->add_subcommand("show", "show it");
  CLI::App* list =
      policy->add_subcommand("list", "the policies that there are, and the hints that they read");
  for (CLI::App* command : {show, list}) command->add_flag("--json", *as_json, "as JSON");
  show->callback([as_json] { Show(*as_json); });
  list->callback([as_json] { List(*as_json); });
  CLI::App* set = policy->add_subcommand("set", "set it; hints of queues are kept");
  set->add_option("name", options->name, "a policy, or a chain of them, as HPF/CFS:process/KEDF")
      ->required()
      ->check(PolicyValidator());
  set->add_option("--by", options->by, server::kByHelp)->check(CLI::IsMember({"queue", "process", "tenant"}));
  set->add_option(
         "--k", options->at_a_time,
         fmt::format("how many queues run at a time ({})", server::ReadBy(&sched::HintsRead::at_a_time)))
      ->check(CLI::Range(size_t{1}, sched::kMostAtATime));
  set->add_option("--timeslice-us", options->timeslice_us,
                  fmt::format("timeslice ({})", server::ReadBy(&sched::HintsRead::timeslice)))
      ->check(CLI::Range(int64_t{TIMESLICE_MIN}, int64_t{TIMESLICE_MAX}));
  set->callback([options] { Set(*options); });
  // As with XSched 1.2's xcli: policy -q; policy -s -n NAME.
  auto* query_flag = policy->add_flag("--query,-q")->description("as show");
  auto* set_flag = policy->add_flag("--set,-s")->description("as set; needs --name");
  auto* name =
      policy->add_option("--name,-n", options->name, "of the policy to set")->check(PolicyValidator());
  set_flag->needs(name);
  name->needs(set_flag);
  policy->callback([policy, query_flag, set_flag, options] {
    if (!policy->get_subcommands().empty()) return;
    if (set_flag->count() != 0) {
      Set(*options);
    } else if (query_flag->count() != 0) {
      Show(/*as_json=*/false);
    } else {
      throw CommandError(kExitUsage, "policy: show, list or set? (see xsched policy --help)");
    }
  });
}

}  // namespace xsched::cli
