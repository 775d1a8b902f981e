// The patterns of a tenants' file (of fnmatch(3)) for control groups, containers, Slurm jobs and pods: what
// they match, and whether one can match anything at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xsched::server {

// "": there are things that it matches. Otherwise, why it never will. `key`: the key of the list in which it
// is: "cgroups", "containers", "jobs" or "pods".
std::string WhyNeverMatched(std::string_view key, const std::string& pattern);

bool MatchesAny(const std::vector<std::string>& patterns, const std::string& text);

// The control group that is matched: this one, or the highest one above it; of the pattern "/", all are below
// it. Empty: none is.
std::string GroupIn(const std::vector<std::string>& patterns, const std::string& cgroup);

}  // namespace xsched::server
