// The tenants' file (/etc/xsched/tenants.toml): which processes are one tenant, and what each tenant may do.
// docs/tenants.md describes it. Pure: text in, rules out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/access.h"
#include "server/tenants/process_identity.h"
#include "server/tenants/tenant.h"

namespace xsched::server {

inline constexpr const char* kTenantsPath = "/etc/xsched/tenants.toml";

// The key `each` of a tenant: each of these is a tenant of its own.
enum class Each : uint8_t { kNone, kUser, kCgroup, kContainer, kPod, kJob };

// A process belongs to the tenant if it has one of each list that is not empty, and what `each` says.
struct TenantRule {
  std::string name;
  TenantRights rights;
  Each each = Each::kNone;
  std::vector<uid_t> users;
  std::vector<gid_t> groups;
  // Patterns (tenant_patterns.h). A control group also stands for those below it.
  std::vector<std::string> cgroups;
  std::vector<std::string> containers;
  std::vector<std::string> jobs;
  std::vector<std::string> pods;

  bool Matches(const Peer& peer, const ProcessIdentity& process) const;
  // The tenant of a process that matches: `name`, or with `each` one such as "name/1234". It is `name` as
  // well if the other one would be too long, or has characters that cannot be shown.
  std::string TenantOf(const Peer& peer, const ProcessIdentity& process) const;
  // True: a tenant of this name is one that `each` makes, or would be.
  bool Makes(std::string_view tenant) const;

  bool operator==(const TenantRule&) const = default;
};

struct TenantRules {
  std::vector<TenantRule> tenants;  // the first one that matches counts
  TenantRights others;              // of each user whose process no tenant matches
  bool no_file = false;             // these are the rules that count without a file

  // True: the memory of all tenants is counted.
  bool LimitMemory() const;
  // Of a tenant by its name, which may be in no rule.
  const TenantRights& RightsOf(const std::string& name) const;
  // Of a tenant by its name: a rule names or makes it, or it is a user.
  bool Know(const std::string& name) const;
  // Null: none matches.
  const TenantRule* Find(const Peer& peer, const ProcessIdentity& process) const;

 private:
  const TenantRule* RuleOf(const std::string& name) const;
};

// The error says the line, and what is wrong with it. `path`: for that message only.
Result<TenantRules> ParseTenantRules(std::string_view text, const std::string& path);
// If there is no such file: the rules that count without one, unless `must_exist`.
Result<TenantRules> ReadTenantRules(const std::string& path, bool must_exist);

}  // namespace xsched::server
