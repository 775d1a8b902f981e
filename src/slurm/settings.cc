#include "slurm/settings.h"

#include <fnmatch.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>

#include "xsched/types.h"

namespace xsched::slurm {

const std::array<SettingInfo, kSettings> kSettingInfo = {{
    {"priority", "XSCHED_AUTO_XQUEUE_PRIORITY", "priority on shared GPUs: bigger is more urgent",
     PRIORITY_NO_EXECUTE, PRIORITY_MAX},
    {"utilization", "XSCHED_AUTO_XQUEUE_UTILIZATION", "share of a GPU in percent, for each task",
     UTILIZATION_MIN, UTILIZATION_MAX},
    {"weight", "XSCHED_AUTO_XQUEUE_WEIGHT", "share of a GPU, in proportion to the weights of others",
     WEIGHT_MIN, WEIGHT_MAX},
}};

namespace {

constexpr uint32_t kPercent = 100;
// The weights of tasks with small parts of a GPU differ by more than they are rounded.
constexpr uint32_t kWeightOfGpu = WEIGHT_MAX;
constexpr size_t kMostPattern = 256;

constexpr std::string_view kCap = "max_";

bool ParseNumber(std::string_view text, int& number) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// Takes what is before the first `separator`, or all, from the beginning of `text`.
std::string_view TakeUntil(char separator, std::string_view& text) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

Error Wrong(std::string_view text, const char* wanted) {
  return Error::Make("'%.*s' is not %s", static_cast<int>(std::min<size_t>(text.size(), 80)), text.data(),
                     wanted);
}

Result<> ApplyAssignment(std::string_view text, Rules& rules) {
  std::string_view value = text;
  std::string_view name = TakeUntil('=', value);
  if (name == "shards") {
    int shards = 0;
    if (!ParseNumber(value, shards) || shards < 1) return Wrong(text, "a number of shards of each GPU");
    rules.shards_of_gpu = static_cast<uint32_t>(shards);
    return {};
  }
  const bool is_cap = name.starts_with(kCap);
  if (is_cap) name.remove_prefix(kCap.size());
  for (int i = 0; i < kSettings; ++i) {
    if (name != kSettingInfo[i].name) continue;
    Result<int> number = ParseSetting(static_cast<Setting>(i), value);
    if (!number) return number.error();
    (is_cap ? rules.caps : rules.defaults)[i] = *number;
    return {};
  }
  return Wrong(text,
               "a setting: priority=, utilization=, weight=, max_priority=, … (see docs/deploy/slurm.md)");
}

// Of partition=NAME, account=NAME or qos=NAME: what the job has; null: it is none of them.
const std::string_view* FieldNamed(std::string_view name, const Job& job) {
  if (name == "partition") return &job.partition;
  if (name == "account") return &job.account;
  if (name == "qos") return &job.qos;
  return nullptr;
}

bool Matches(std::string_view pattern, std::string_view text) {
  char ended_pattern[kMostPattern] = "";
  char ended_text[kMostPattern] = "";
  if (pattern.size() >= kMostPattern || text.size() >= kMostPattern) return false;
  pattern.copy(ended_pattern, pattern.size());
  text.copy(ended_text, text.size());
  return fnmatch(ended_pattern, ended_text, 0) == 0;
}

// The job's part of a GPU, of which `whole` are all, for each of its tasks on this node; at least 1.
std::optional<int> PartOf(const Rules& rules, const Job& job, uint64_t whole) {
  if (rules.shards_of_gpu == 0 || job.shards == 0) return std::nullopt;
  const uint64_t divided_by = uint64_t{rules.shards_of_gpu} * std::max(job.tasks, 1U);
  const uint64_t part = (uint64_t{job.shards} * whole + divided_by / 2) / divided_by;
  return static_cast<int>(std::clamp<uint64_t>(part, 1, whole));
}

// What the job's shards say of a setting.
std::optional<int> ShareOf(const Rules& rules, const Job& job, int setting) {
  switch (setting) {
    case kUtilization:
      return PartOf(rules, job, kPercent);
    case kWeight:
      return PartOf(rules, job, kWeightOfGpu);
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<int> ParseSetting(Setting setting, std::string_view text) {
  const SettingInfo& info = kSettingInfo[setting];
  int number = 0;
  if (ParseNumber(text, number) && number >= info.min && number <= info.max) return number;
  return Error::Make("%s: '%.*s' is not a number from %d to %d", info.name,
                     static_cast<int>(std::min<size_t>(text.size(), 80)), text.data(), info.min, info.max);
}

Result<> Apply(const char* argument, const Job& job, Rules& rules) {
  constexpr std::string_view kProgram = "xsched=";
  std::string_view rest = argument;
  if (rest.starts_with(kProgram)) {
    if (rest[kProgram.size()] != '/') return Wrong(rest, "the path of xsched");
    rules.program = argument + kProgram.size();
    return {};
  }
  bool is_about_job = true;
  std::string_view pattern = rest;
  if (const std::string_view* field = FieldNamed(TakeUntil('=', pattern), job); field != nullptr) {
    pattern = TakeUntil(':', pattern);
    TakeUntil(':', rest);
    if (rest.empty()) return Wrong(argument, "a rule, as partition=urgent:priority=10");
    is_about_job = Matches(pattern, *field);
  }
  Rules changed = rules;
  do {
    if (Result<> applied = ApplyAssignment(TakeUntil(',', rest), changed); !applied) return applied;
  } while (!rest.empty());
  if (is_about_job) rules = changed;
  return {};
}

Decision Decide(const Rules& rules, const Job& job) {
  Decision decision;
  for (int i = 0; i < kSettings; ++i) {
    const std::optional<int> shared = ShareOf(rules, job, i);
    std::optional<int> value = job.options[i];
    if (!value) value = shared;  // not a variable: a step would have its job's share for its own
    if (!value) value = job.variables[i];
    if (!value) value = rules.defaults[i];
    std::optional<int> cap = rules.caps[i];
    if (shared) cap = std::min(cap.value_or(*shared), *shared);
    if (value && cap && *value > *cap) {
      if (job.options[i] || !shared) decision.lowered_from[i] = value;
      value = cap;
    }
    decision.values[i] = value;
  }
  return decision;
}

}  // namespace xsched::slurm
