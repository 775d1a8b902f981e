// How the tasks of a Slurm job are scheduled: from what the job asks for, and from the plugin's arguments in
// plugstack.conf, which give defaults and caps. docs/deploy/slurm.md describes the arguments. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace xsched::slurm {

enum Setting { kPriority, kUtilization, kWeight, kSettings };

struct SettingInfo {
  const char* name;      // in plugstack.conf; as an option: --xsched-NAME, and of xsched run: --NAME
  const char* variable;  // by which a program says the same
  const char* usage;
  int min;
  int max;
};
extern const std::array<SettingInfo, kSettings> kSettingInfo;

using Values = std::array<std::optional<int>, kSettings>;

// The error says which numbers there may be.
Result<int> ParseSetting(Setting setting, std::string_view text);

struct Job {
  std::string_view partition;
  std::string_view account;
  std::string_view qos;
  uint32_t shards = 0;  // on this node; 0: it has none
  uint32_t tasks = 1;   // on this node
  Values options;
  Values variables;  // what its environment says
};

struct Rules {
  Values defaults;
  Values caps;
  uint32_t shards_of_gpu = 0;     // 0: shards say nothing
  const char* program = nullptr;  // xsched; null: the one that belongs to this build
};

// Takes an argument of plugstack.conf into the rules, if it is about this job. An argument with an error
// changes nothing. The rules refer to its text.
Result<> Apply(const char* argument, const Job& job, Rules& rules);

struct Decision {
  Values values;        // for each task; all empty: nothing is asked for, and the job runs natively
  Values lowered_from;  // what the job has asked for, if that is more than it may have
};
Decision Decide(const Rules& rules, const Job& job);

}  // namespace xsched::slurm
