// xsched tenants: the tenants that this user may see, and whether a tenants' file is valid.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/json_text.h"
#include "cli/queue_text.h"
#include "cli/server_session.h"
#include "cli/validators.h"
#include "server/empty_values.h"
#include "server/tenants/tenants_file.h"

namespace xsched::cli {
namespace {

struct TenantsOptions {
  bool json = false;
  std::string check;
};

double Seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

// "30 %" of a device; "-": none.
std::string PartText(int64_t part_us, int64_t period_us) {
  if (part_us == 0 || period_us == 0) return "-";
  return fmt::format("{:.3g} %", 100 * static_cast<double>(part_us) / static_cast<double>(period_us));
}

// "1.50 of 20.00 GiB", of the device of which the tenant has most; "-": no limit.
std::string MemoryText(const ipc::Tenant& tenant) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  if (tenant.memory_limit == 0) return "-";
  return fmt::format("{:.2f} of {:.2f} GiB", static_cast<double>(tenant.memory_used) / kGiB,
                     static_cast<double>(tenant.memory_limit) / kGiB);
}

void PrintTable(const std::vector<ipc::Tenant>& tenants) {
  fmt::print("{:<24} {:>6} {:>6} {:>6} {:>7} {:>7} {:>9} {:>6} {:>11} {:>10} {:>9} {:>7} {:>20}\n", "TENANT",
             "PROCS", "QUEUES", "WEIGHT", "HIGHEST", "LOWERED", "GUARANTEE", "LIMIT", "SERVICE s",
             "WAITING s", "REQUESTS", "REFUSED", "MEMORY");
  for (const ipc::Tenant& tenant : tenants) {
    const uint64_t waited = tenant.held_ns + tenant.turn_ns + tenant.off_device_ns + tenant.limited_ns;
    fmt::print("{:<24} {:>6} {:>6} {:>6} {:>7} {:>7} {:>9} {:>6} {:>11.3f} {:>10.3f} {:>9} {:>7} {:>20}\n",
               TenantText(tenant.name), tenant.processes, tenant.queues, tenant.weight, tenant.max_priority,
               tenant.lowered_by, PartText(tenant.guarantee_us, tenant.period_us),
               PartText(tenant.limit_us, tenant.period_us), Seconds(tenant.service_ns), Seconds(waited),
               tenant.requests, tenant.refused, MemoryText(tenant));
  }
}

void ShowTenants(bool as_json) {
  ServerSession server;
  server.Require(kMinorOfTenants, "for tenants");
  const std::vector<ipc::Tenant> tenants = server.Usage().tenants;
  if (!as_json) return PrintTable(tenants);
  nlohmann::json all = nlohmann::json::array();
  for (const ipc::Tenant& tenant : tenants) {
    nlohmann::json& one = all.emplace_back(nlohmann::json::object());
    ipc::ForEachShown(tenant, [&one](const char* name, const auto& value) { one[name] = value; });
  }
  fmt::print("{}\n", JsonText(all));
}

void Check(const std::string& path) {
  Result<server::TenantRules> rules = server::ReadTenantRules(path, /*must_exist=*/true);
  if (!rules) throw CommandError(kExitFailed, rules.error().text());
  const size_t count = rules->tenants.size();
  fmt::print("{}: valid, {} {}\n", path, count, count == 1 ? "entry" : "entries");
}

}  // namespace

void AddTenants(CLI::App& app) {
  auto options = std::make_shared<TenantsOptions>();
  CLI::App* tenants = app.add_subcommand(
      "tenants", "list the tenants (yours; all of them for administrators), or check their file");
  auto* json = tenants->add_flag("--json", options->json, "as JSON");
  tenants
      ->add_option("--check", options->check, "say whether this tenants' file is valid, and change nothing")
      ->type_name("FILE")
      ->check(server::NotEmpty())
      ->excludes(json);
  tenants->callback(
      [options] { options->check.empty() ? ShowTenants(options->json) : Check(options->check); });
}

}  // namespace xsched::cli
