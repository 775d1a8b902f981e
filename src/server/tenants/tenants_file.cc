#include "server/tenants/tenants_file.h"

#include <errno.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/byte_size.h"
#include "sched/core/reservation.h"
#include "server/tenants/tenant_patterns.h"

namespace xsched::server {
namespace {

constexpr int64_t kDefaultPeriodUs = 100'000;
constexpr double kPercent = 100;

bool IsName(std::string_view text) {
  return text.size() <= kMaxTenantName &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// What is wrong, and where: 0 is the whole file.
struct Fault : std::runtime_error {
  Fault(toml::source_index at, const std::string& what) : std::runtime_error(what), line(at) {}
  Fault(const toml::node& at, const std::string& what) : Fault(at.source().begin.line, what) {}
  toml::source_index line;
};

int64_t IntegerIn(const toml::node& node, const char* key, int64_t min, int64_t max) {
  const std::optional<int64_t> value = node.is_integer() ? node.value<int64_t>() : std::nullopt;
  if (!value || *value < min || *value > max)
    throw Fault(node, fmt::format("{} must be a whole number from {} to {}", key, min, max));
  return *value;
}

double PercentIn(const toml::node& node, const char* key) {
  const std::optional<double> value = node.is_number() ? node.value<double>() : std::nullopt;
  if (!value || !(*value >= 0 && *value <= kPercent))
    throw Fault(node, fmt::format("{} must be a percentage of a device, from 0 to 100", key));
  return *value;
}

// 0: "none".
uint64_t BytesIn(const toml::node& node, const char* key) {
  const std::optional<std::string> text = node.is_string() ? node.value<std::string>() : std::nullopt;
  if (text == "none") return 0;
  const std::optional<uint64_t> bytes = text ? ReadByteSize(text->c_str()) : std::nullopt;
  if (!bytes) throw Fault(node, fmt::format("{} must be a size such as \"20GiB\", or \"none\"", key));
  return *bytes;
}

// What a tenant, a class and [default] have in common.
struct Terms {
  std::optional<int64_t> weight, max_priority, queues, period_us, burst_us;
  std::optional<double> guarantee, limit;
  std::optional<uint64_t> memory;
  std::map<std::string, std::string, std::less<>> said_by;  // the table that says it, by the key

  // `table`: as messages name it. False: there is no such key among them.
  bool Take(std::string_view key, const toml::node& node, const std::string& table) {
    if (key == "weight") {
      weight = IntegerIn(node, "weight", WEIGHT_MIN, WEIGHT_MAX);
    } else if (key == "max_priority") {
      max_priority = IntegerIn(node, "max_priority", PRIORITY_MIN, PRIORITY_MAX);
    } else if (key == "queues") {
      queues = IntegerIn(node, "queues", 0, int64_t{kMaxQueuesOfUser});
    } else if (key == "guarantee") {
      guarantee = PercentIn(node, "guarantee");
    } else if (key == "limit") {
      limit = PercentIn(node, "limit");
    } else if (key == "period_us") {
      period_us = IntegerIn(node, "period_us", RESERVATION_PERIOD_MIN, RESERVATION_PERIOD_MAX);
    } else if (key == "burst_us") {
      burst_us = IntegerIn(node, "burst_us", 0, RESERVATION_PERIOD_MAX);
    } else if (key == "memory") {
      memory = BytesIn(node, "memory");
    } else {
      return false;
    }
    said_by.emplace(key, table);
    return true;
  }

  void FillFrom(const Terms& other) {
    auto fill = [](auto& mine, const auto& others) {
      if (!mine) mine = others;
    };
    fill(weight, other.weight);
    fill(max_priority, other.max_priority);
    fill(queues, other.queues);
    fill(period_us, other.period_us);
    fill(burst_us, other.burst_us);
    fill(guarantee, other.guarantee);
    fill(limit, other.limit);
    fill(memory, other.memory);
    said_by.insert(other.said_by.begin(), other.said_by.end());  // what is there already stays
  }

  TenantRights Rights(const toml::node& at) const {
    TenantRights rights;
    if (weight) rights.share.weight = static_cast<Weight>(*weight);
    if (max_priority) rights.max_priority = static_cast<Priority>(*max_priority);
    if (queues) rights.max_queues = static_cast<size_t>(*queues);
    rights.memory = memory.value_or(0);
    // The whole device is no limit. So a tenant can be exempted from that of its class or of [default].
    const bool is_limited = limit && *limit < kPercent;
    if (!is_limited && guarantee.value_or(0) == 0) return rights;
    sched::Hints asked;
    asked.period_us = period_us.value_or(kDefaultPeriodUs);
    auto part = [&](std::optional<double> percent) {
      return static_cast<int64_t>(percent.value_or(0) / kPercent * static_cast<double>(asked.period_us));
    };
    asked.guarantee_us = part(guarantee);
    if (is_limited) asked.limit_us = part(limit);
    if (is_limited || !limit) asked.burst_us = burst_us.value_or(0);
    if (!sched::IsReservation(asked) || (is_limited && asked.limit_us == 0)) {
      throw Fault(at,
                  fmt::format("{} do not fit together: the limit must not be less than the guarantee, nor "
                              "than {} µs of a period, and burst_us not more than the limit",
                              ReservationText(), TIMESLICE_MIN));
    }
    sched::TakeReservation(rights.share, asked);
    return rights;
  }

 private:
  // "guarantee = 60 (of the tenant), limit = 50 (of [class.paid]), …"
  std::string ReservationText() const {
    std::string text;
    auto add = [&](const char* key, const auto& value) {
      if (value)
        text += fmt::format("{}{} = {} (of {})", text.empty() ? "" : ", ", key, *value, said_by.at(key));
    };
    add("guarantee", guarantee);
    add("limit", limit);
    add("period_us", period_us);
    add("burst_us", burst_us);
    return text;
  }
};

const toml::table& TableIn(const toml::node& node, const std::string& what) {
  if (const toml::table* table = node.as_table()) return *table;
  throw Fault(node, fmt::format("{} must be a table", what));
}

std::string TextIn(const toml::node& node, const std::string& what) {
  const std::optional<std::string> text = node.is_string() ? node.value<std::string>() : std::nullopt;
  if (!text) throw Fault(node, fmt::format("{} must be a text", what));
  if (text->empty()) throw Fault(node, fmt::format("{} must not be empty", what));
  return *text;
}

// `take(element)` for each of a list.
template <typename Take>
void ForEachIn(const toml::node& node, std::string_view key, Take&& take) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty())
    throw Fault(node, fmt::format("{} must be a list with one element at least", key));
  for (const toml::node& element : *list) take(element);
}

template <typename Id, typename Find>
std::vector<Id> IdsIn(const toml::node& node, std::string_view key, const char* what, Find&& find) {
  std::vector<Id> ids;
  ForEachIn(node, key, [&](const toml::node& element) {
    if (element.is_integer()) {
      ids.push_back(static_cast<Id>(IntegerIn(element, what, 0, int64_t{static_cast<Id>(-2)})));
      return;
    }
    const std::string name = TextIn(element, fmt::format("a {} in {}", what, key));
    const std::optional<Id> id = find(name.c_str());
    if (!id) throw Fault(element, fmt::format("there is no {} {}", what, name));
    ids.push_back(*id);
  });
  return ids;
}

std::optional<uid_t> FindUser(const char* name) {
  const passwd* user = getpwnam(name);
  return user == nullptr ? std::nullopt : std::optional(user->pw_uid);
}
std::optional<gid_t> FindGroupNamed(const char* name) {
  const group* found = getgrnam(name);
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

Each EachIn(const toml::node& node) {
  static constexpr std::pair<std::string_view, Each> kAll[] = {{"user", Each::kUser},
                                                               {"cgroup", Each::kCgroup},
                                                               {"container", Each::kContainer},
                                                               {"pod", Each::kPod},
                                                               {"job", Each::kJob}};
  const std::string text = node.is_string() ? node.value<std::string>().value_or("") : "";
  for (const auto& [name, each] : kAll) {
    if (text == name) return each;
  }
  throw Fault(node, R"(each must be "user", "cgroup", "container", "pod" or "job")");
}

std::vector<std::string> PatternsIn(const toml::node& node, std::string_view key) {
  std::vector<std::string> patterns;
  ForEachIn(node, key, [&](const toml::node& element) {
    std::string pattern = element.is_integer() ? std::to_string(IntegerIn(element, "a number", 0, INT64_MAX))
                                               : TextIn(element, fmt::format("an element of {}", key));
    const std::string why = WhyNeverMatched(key, pattern);
    if (!why.empty())
      throw Fault(element, fmt::format("\"{}\" in {} can match nothing: {}", pattern, key, why));
    patterns.push_back(std::move(pattern));
  });
  return patterns;
}

Terms TermsIn(const toml::table& table, const std::string& what) {
  Terms terms;
  for (const auto& [key, node] : table) {
    if (!terms.Take(key.str(), node, what))
      throw Fault(node, fmt::format("{} has no setting {}", what, key.str()));
  }
  return terms;
}

struct Class {
  Terms terms;
  const toml::node& at;
  bool is_used = false;
};
using Classes = std::map<std::string, Class, std::less<>>;

TenantRule RuleIn(const toml::table& table, Classes& classes, const Terms& defaults) {
  TenantRule rule;
  Terms terms;
  std::optional<Terms> of_class;
  bool names_any = false;
  for (const auto& [name, node] : table) {
    const std::string_view key = name.str();
    if (terms.Take(key, node, "the tenant")) continue;
    names_any |= key != "name" && key != "class";
    if (key == "name") {
      rule.name = TextIn(node, "name");
    } else if (key == "class") {
      const auto found = classes.find(TextIn(node, "class"));
      if (found == classes.end())
        throw Fault(node, fmt::format("there is no class {}", TextIn(node, "class")));
      of_class = found->second.terms;
      found->second.is_used = true;
    } else if (key == "users") {
      rule.users = IdsIn<uid_t>(node, key, "user", FindUser);
    } else if (key == "groups") {
      rule.groups = IdsIn<gid_t>(node, key, "group", FindGroupNamed);
    } else if (key == "cgroups") {
      rule.cgroups = PatternsIn(node, key);
    } else if (key == "containers") {
      rule.containers = PatternsIn(node, key);
    } else if (key == "jobs") {
      rule.jobs = PatternsIn(node, key);
    } else if (key == "pods") {
      rule.pods = PatternsIn(node, key);
    } else if (key == "each") {
      rule.each = EachIn(node);
    } else {
      throw Fault(node, fmt::format("a tenant has no setting {}", key));
    }
  }
  if (rule.name.empty()) throw Fault(table, "a tenant must have a name");
  if (!IsName(rule.name))
    throw Fault(table, fmt::format("a tenant's name has at most {} printable characters", kMaxTenantName));
  if (rule.name.starts_with(kUserTenantPrefix) || rule.name == kFurtherUsersTenant) {
    throw Fault(
        table,
        fmt::format("a tenant cannot have the name {}: the server gives {} and a number, and {}, to users "
                    "whom no tenant names",
                    rule.name, kUserTenantPrefix, kFurtherUsersTenant));
  }
  if (!names_any) {
    throw Fault(
        table,
        fmt::format(
            "tenant {} needs users, groups, cgroups, containers, jobs, pods or each, which say who it is",
            rule.name));
  }
  if (rule.each == Each::kCgroup && rule.cgroups.empty())
    throw Fault(table, "each = \"cgroup\" needs cgroups: each group that they match is a tenant");
  if (of_class) terms.FillFrom(*of_class);
  terms.FillFrom(defaults);
  rule.rights = terms.Rights(table);
  if (rule.each != Each::kNone && sched::GuaranteeOf(rule.rights.share) > 0)
    throw Fault(table, "a tenant with each has no guarantee: it is for any number of tenants");
  return rule;
}

// Compares the last rule's name with the names of all rules before it.
void CheckNames(const toml::node& at, const std::vector<TenantRule>& rules) {
  const TenantRule& last = rules.back();
  for (const TenantRule& rule : std::span(rules).first(rules.size() - 1)) {
    if (rule.name == last.name) throw Fault(at, fmt::format("there are two tenants {}", last.name));
    const bool is_last = last.Makes(rule.name);
    if (is_last || rule.Makes(last.name)) {
      throw Fault(at, fmt::format("tenant {} has a name as each of tenant {} makes them",
                                  is_last ? rule.name : last.name, is_last ? last.name : rule.name));
    }
  }
}

// Adds up those of all rules. `at`: the last one.
void CheckGuarantees(const toml::node& at, const std::vector<TenantRule>& rules) {
  constexpr double kRounding = 1e-9;
  double all = 0;
  for (const TenantRule& rule : rules) all += sched::GuaranteeOf(rule.rights.share);
  if (all > 1 + kRounding) {
    throw Fault(at, fmt::format("with tenant {}, the guarantees are {:.1f} % of a device, and more than 100",
                                rules.back().name, all * kPercent));
  }
}

// The terms of a class that has tenants were checked with what these say themselves.
void CheckUnused(const Classes& classes, const Terms& defaults) {
  for (const auto& [name, unused] : classes) {
    if (unused.is_used) continue;
    Terms terms = unused.terms;
    terms.FillFrom(defaults);
    static_cast<void>(terms.Rights(unused.at));
  }
}

TenantRules RulesIn(const toml::table& file) {
  TenantRules rules;
  Terms defaults;
  Classes classes;
  for (const auto& [name, node] : file) {
    if (name.str() == "default") {
      defaults = TermsIn(TableIn(node, "default"), "[default]");
      if (defaults.guarantee) throw Fault(node, "[default] has no guarantee: it is for any number of users");
      rules.others = defaults.Rights(node);
    } else if (name.str() == "class") {
      for (const auto& [of, terms] : TableIn(node, "class")) {
        const std::string name_of_table = fmt::format("[class.{}]", of.str());
        classes.emplace(of.str(), Class{TermsIn(TableIn(terms, "a class"), name_of_table), terms});
      }
    } else if (name.str() != "tenant") {
      throw Fault(node,
                  fmt::format("there is no setting {}: default, class and tenant are known", name.str()));
    }
  }
  if (const toml::node* tenants = file.get("tenant")) {
    if (!tenants->is_array()) throw Fault(*tenants, "tenants are written as [[tenant]]");
    for (const toml::node& node : *tenants->as_array()) {
      rules.tenants.push_back(RuleIn(TableIn(node, "a tenant"), classes, defaults));
      CheckNames(node, rules.tenants);
      CheckGuarantees(node, rules.tenants);
    }
  }
  CheckUnused(classes, defaults);
  return rules;
}

// Of a container: as much of its id as engines show. A control group begins with the '/' already.
std::string SuffixOf(Each each, const std::vector<std::string>& cgroups, const Peer& peer,
                     const ProcessIdentity& process) {
  auto behind_slash = [](std::string_view id) { return id.empty() ? "" : fmt::format("/{}", id); };
  switch (each) {
    case Each::kUser:
      return fmt::format("/{}", peer.uid);
    case Each::kCgroup:
      return GroupIn(cgroups, process.cgroup);
    case Each::kContainer:
      return behind_slash(std::string_view(process.container).substr(0, kShownContainerDigits));
    case Each::kPod:
      return behind_slash(process.pod);
    case Each::kJob:
      return behind_slash(process.job);
    case Each::kNone:
      break;
  }
  return "";
}

// Where a key may stand, toml++ 3.3 has undefined behavior for some other characters. A # behind a quotation
// mark may be a part of a text, so only a # before every quotation mark of its line is known to begin a
// comment. In a text of several lines it would begin none.
void CheckCharacters(std::string_view text) {
  toml::source_index number = 0;
  while (!text.empty()) {
    ++number;
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t end = line.find_first_of("#\"'");
    if (end != std::string_view::npos && line[end] == '#') line = line.substr(0, end);
    if (std::any_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
      throw Fault(number, "only a comment may have characters other than ASCII, and no text before it");
    if (line.find("'''") != std::string_view::npos || line.find(R"(""")") != std::string_view::npos)
      throw Fault(number, "a text must be in one line: there are no ''' and \"\"\" here");
  }
}

Error ErrorAt(const std::string& path, toml::source_index line, std::string_view what) {
  const std::string where = line == 0 ? path : fmt::format("{}:{}", path, line);
  return Error::Make("%s", fmt::format("{}: {}", where, what).c_str());
}

}  // namespace

bool TenantRule::Matches(const Peer& peer, const ProcessIdentity& process) const {
  auto has_any = [](const auto& wanted, const auto& those) {
    return std::find_first_of(wanted.begin(), wanted.end(), those.begin(), those.end()) != wanted.end();
  };
  return (users.empty() || std::find(users.begin(), users.end(), peer.uid) != users.end()) &&
         (groups.empty() || has_any(groups, peer.groups)) &&
         (cgroups.empty() || !GroupIn(cgroups, process.cgroup).empty()) &&
         (containers.empty() || MatchesAny(containers, process.container)) &&
         (jobs.empty() || MatchesAny(jobs, process.job)) && (pods.empty() || MatchesAny(pods, process.pod)) &&
         (each == Each::kNone || !SuffixOf(each, cgroups, peer, process).empty());
}

std::string TenantRule::TenantOf(const Peer& peer, const ProcessIdentity& process) const {
  std::string tenant = name + SuffixOf(each, cgroups, peer, process);
  return IsName(tenant) ? tenant : name;
}

bool TenantRule::Makes(std::string_view tenant) const {
  return each != Each::kNone && tenant.starts_with(name) && tenant.substr(name.size()).starts_with('/');
}

const TenantRule* TenantRules::RuleOf(const std::string& name) const {
  const auto rule = std::find_if(tenants.begin(), tenants.end(), [&](const TenantRule& tenant) {
    return tenant.name == name || tenant.Makes(name);
  });
  return rule == tenants.end() ? nullptr : &*rule;
}

const TenantRights& TenantRules::RightsOf(const std::string& name) const {
  const TenantRule* rule = RuleOf(name);
  return rule == nullptr ? others : rule->rights;
}

bool TenantRules::Know(const std::string& name) const {
  return name.starts_with(kUserTenantPrefix) || name == kFurtherUsersTenant || RuleOf(name) != nullptr;
}

bool TenantRules::LimitMemory() const {
  return others.memory != 0 || std::any_of(tenants.begin(), tenants.end(),
                                           [](const TenantRule& rule) { return rule.rights.memory != 0; });
}

const TenantRule* TenantRules::Find(const Peer& peer, const ProcessIdentity& process) const {
  const auto found = std::find_if(tenants.begin(), tenants.end(),
                                  [&](const TenantRule& rule) { return rule.Matches(peer, process); });
  return found == tenants.end() ? nullptr : &*found;
}

Result<TenantRules> ParseTenantRules(std::string_view text, const std::string& path) try {
  CheckCharacters(text);
  return RulesIn(toml::parse(text));
} catch (const toml::parse_error& error) {
  return ErrorAt(path, error.source().begin.line, error.description());
} catch (const Fault& fault) {
  return ErrorAt(path, fault.line, fault.what());
}

Result<TenantRules> ReadTenantRules(const std::string& path, bool must_exist) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Error::Make("%s is a folder", path.c_str());
  errno = 0;
  std::ifstream file(path);
  if (!file && errno == ENOENT && !must_exist) return TenantRules{.no_file = true};
  std::stringstream text;
  if (!file || !(text << file.rdbuf() || file.peek() == std::ifstream::traits_type::eof()))
    return Error::FromErrno(errno, "cannot read %s", path.c_str());
  return ParseTenantRules(text.str(), path);
}

}  // namespace xsched::server
