// xsched policy: shows and sets the server's policy.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/server_session.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

struct PolicyOptions {
  std::string name;
  int64_t timeslice_us = 0;
};

void Show() {
  ipc::Status status = ServerSession().Status();
  fmt::print("policy {}, timeslice {} µs\n", sched::PolicyName(static_cast<XPolicyType>(status.policy)),
             status.timeslice_us);
}

void List() {
  for (sched::PolicyGetter policy : sched::Policies()) {
    const sched::PolicyInfo& info = policy().info();
    fmt::print("{:<5} {} (hints: {})\n", info.name, info.summary, server::NamesOfHints(info));
  }
}

void Set(const PolicyOptions& options) {
  ipc::SetPolicy request{};
  request.policy = PolicyByName(options.name);
  request.timeslice_us = options.timeslice_us;
  ServerSession().SetPolicy(request);
  Show();
}

}  // namespace

void AddPolicy(CLI::App& app) {
  CLI::App* policy = app.add_subcommand("policy", "show or set the server's policy");
  policy->require_subcommand(1);
  policy->add_subcommand("show", "show it")->callback(Show);
  policy->add_subcommand("list", "the policies that there are, and the hints that they read")->callback(List);
  auto options = std::make_shared<PolicyOptions>();
  CLI::App* set = policy->add_subcommand("set", "set it; hints of queues are kept");
  set->add_option("name", options->name)->required()->check(PolicyValidator());
  set->add_option("--timeslice-us", options->timeslice_us,
                  fmt::format("timeslice ({})", server::ReadBy(&sched::HintsRead::timeslice)))
      ->check(CLI::Range(int64_t{TIMESLICE_MIN}, int64_t{TIMESLICE_MAX}));
  set->callback([options] { Set(*options); });
}

}  // namespace xsched::cli
