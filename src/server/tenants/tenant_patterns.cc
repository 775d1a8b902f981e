#include "server/tenants/tenant_patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

namespace xsched::server {
namespace {

constexpr const char* kAllGroups = "/";
constexpr const char* kMatchesAnyNumber = "*";

// What the ids of one kind look like (process_identity.h).
struct Ids {
  std::string_view key;
  std::string_view characters;
  size_t min, max;
  const char* description;
};
// The kubelet gives pods of files on its own node a uid of 32 characters, and an API server one of 36.
constexpr Ids kIds[] = {
    {"containers", "0123456789abcdef", 64, 64,
     "a container's id has 64 characters of 0-9 and a-f; for its beginning alone, add a *"},
    {"pods", "0123456789abcdef-", 32, 36,
     "a pod's uid has 32 to 36 characters of 0-9, a-f and -; for its beginning alone, add a *"},
    {"jobs", "0123456789", 1, 20, "the number of a Slurm job has digits only"},
};

// Where the bracket ends that begins at `at`; npos: it is not closed.
size_t EndOfBracket(std::string_view pattern, size_t at) {
  size_t next = at + 1;
  if (next < pattern.size() && (pattern[next] == '!' || pattern[next] == '^')) ++next;
  const size_t first = next;
  for (; next < pattern.size(); ++next) {
    if (pattern[next] == ']' && next != first) return next + 1;
    if (pattern[next] == '\\') ++next;
    if (pattern.substr(next).starts_with("[:")) {
      const size_t end = pattern.find(":]", next + 2);
      if (end != std::string_view::npos) next = end + 1;
    }
  }
  return std::string_view::npos;
}

// What stands for one character each, or is a *. Nullopt: a bracket is not closed, or nothing follows a
// backslash.
std::optional<std::vector<std::string>> PartsOf(std::string_view pattern) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < pattern.size();) {
    const size_t end = pattern[at] == '[' ? EndOfBracket(pattern, at) : pattern[at] == '\\' ? at + 2 : at + 1;
    if (end > pattern.size()) return std::nullopt;
    parts.emplace_back(pattern.substr(at, end - at));
    at = end;
  }
  return parts;
}

bool CanBe(const std::vector<std::string>& parts, const Ids& ids) {
  size_t count = 0;
  bool any_number = false;
  for (const std::string& part : parts) {
    if (part == kMatchesAnyNumber) {
      any_number = true;
      continue;
    }
    ++count;
    if (std::none_of(ids.characters.begin(), ids.characters.end(),
                     [&](char c) { return fnmatch(part.c_str(), std::string(1, c).c_str(), 0) == 0; }))
      return false;
  }
  return count <= ids.max && (any_number || count >= ids.min);
}

std::string WhyNoGroup(const std::string& pattern) {
  if (std::string_view("/*?[\\").find(pattern[0]) == std::string_view::npos)
    return "the path of a control group begins with /";
  if (pattern != kAllGroups && pattern.ends_with('/')) return "the path of a control group ends without a /";
  if (pattern.find("//") != std::string::npos) return "the path of a control group has no //";
  return "";
}

}  // namespace

std::string WhyNeverMatched(std::string_view key, const std::string& pattern) {
  const std::optional<std::vector<std::string>> parts = PartsOf(pattern);
  if (!parts) return "a [ is not closed, or a \\ ends it; [[] is the character [";
  if (key == "cgroups") return WhyNoGroup(pattern);
  const auto* ids =
      std::find_if(std::begin(kIds), std::end(kIds), [&](const Ids& of) { return of.key == key; });
  return ids == std::end(kIds) || CanBe(*parts, *ids) ? "" : ids->description;
}

bool MatchesAny(const std::vector<std::string>& patterns, const std::string& text) {
  return !text.empty() && std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  });
}

std::string GroupIn(const std::vector<std::string>& patterns, const std::string& cgroup) {
  if (!cgroup.empty() && std::find(patterns.begin(), patterns.end(), kAllGroups) != patterns.end())
    return kAllGroups;
  for (size_t end = 0; end < cgroup.size();) {
    end = std::min(cgroup.find('/', end + 1), cgroup.size());
    std::string group = cgroup.substr(0, end);
    if (MatchesAny(patterns, group)) return group;
  }
  return "";
}

}  // namespace xsched::server
