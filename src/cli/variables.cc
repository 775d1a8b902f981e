#include "cli/variables.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/byte_size.h"
#include "base/former_variables.h"
#include "cli/platform.h"
#include "cli/validators.h"
#include "ipc/client.h"
#include "preempt/gates/launch_config.h"
#include "server/policy_names.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

using Kind = EnvironmentVariable::Kind;

constexpr const char* kThreshold = "XSCHED_AUTO_XQUEUE_THRESHOLD";
constexpr const char* kSwitch = " ON 1 TRUE YES OFF 0 FALSE NO ";
constexpr const char* kLogLevels = " OFF ERROR WARN INFO DEBUG ERRO DEBG ";

using VariableList = std::vector<EnvironmentVariable>;

// Of every platform.
VariableList GeneralVariables() {
  return {
      {"XSCHED_SCHEDULER",
       "who schedules: GLB (the server), LCL (the process), APP (the program itself; default)", Kind::kWord,
       0, 0, " GLB LCL APP "},
      {"XSCHED_POLICY",
       fmt::format("{}: schedule in the process, with this policy",
                   server::Listed(server::PolicyNames(), "or")),
       Kind::kPolicy},
      {"XSCHED_SOCKET", "the server's socket", Kind::kSocket},
      {"XSCHED_JOB",
       "any word: processes of one user with the same word are one job, and have their turns together",
       Kind::kText},
      {"XSCHED_MEMORY", "of each device at most so much memory, such as 20GiB", Kind::kByteSize},
      {"XSCHED_MEMORY_ACCOUNT",
       "a file in which the processes of one program count their memory together; else each has the limit "
       "for "
       "itself",
       Kind::kText},
      {"XSCHED_AUTO_XQUEUE", "ON: every queue is scheduled", Kind::kWord, 0, 0, kSwitch},
      {"XSCHED_AUTO_XQUEUE_LEVEL", "1 to 3: highest preemption level to use (3)", Kind::kNumber, 1, 3},
      {kThreshold, fmt::format("commands in flight at most ({})", preempt::kDefaultThreshold), Kind::kNumber,
       1, INT64_MAX},
      {"XSCHED_AUTO_XQUEUE_BATCH_SIZE",
       fmt::format("1 to the threshold: commands let through at a time ({})", preempt::kDefaultBatchSize),
       Kind::kNumber, 1, preempt::kDefaultThreshold, "", "", kThreshold},
      {"XSCHED_AUTO_XQUEUE_PRIORITY",
       "-255 to 255, bigger is more urgent (0); -256: only while no other queue of the device has work",
       Kind::kNumber, PRIORITY_NO_EXECUTE, PRIORITY_MAX},
      {"XSCHED_AUTO_XQUEUE_UTILIZATION", "0 to 100: share in percent (100)", Kind::kNumber, UTILIZATION_MIN,
       UTILIZATION_MAX},
      {"XSCHED_AUTO_XQUEUE_WEIGHT", "1 to 10000: share, in proportion to the weights of others (100)",
       Kind::kNumber, WEIGHT_MIN, WEIGHT_MAX},
      {"XSCHED_AUTO_XQUEUE_GUARANTEE", "µs of each period that it gets", Kind::kNumber, 0,
       RESERVATION_PERIOD_MAX},
      {"XSCHED_AUTO_XQUEUE_PERIOD", "µs, 1000 to 1000000: the period of guarantee and limit", Kind::kNumber,
       RESERVATION_PERIOD_MIN, RESERVATION_PERIOD_MAX},
      {"XSCHED_AUTO_XQUEUE_LIMIT", "µs of each period that it gets at most", Kind::kNumber, 0,
       RESERVATION_PERIOD_MAX},
      {"XSCHED_AUTO_XQUEUE_BURST", "µs of an unused limit that may be used later", Kind::kNumber, 0,
       RESERVATION_PERIOD_MAX},
      {"XSCHED_AUTO_XQUEUE_LATENCY_TARGET", "µs that 99 of 100 requests should take at most; 0: no target",
       Kind::kNumber, NO_LATENCY_TARGET, LATENCY_TARGET_MAX},
      {"XSCHED_AUTO_XQUEUE_FLOOR",
       "1 to 99: percent that queues without a latency target get together at least (5)", Kind::kNumber,
       FLOOR_MIN, FLOOR_MAX},
      {"XSCHED_AUTO_XQUEUE_TIMESLICE", "µs, 100 to 10000000", Kind::kNumber, TIMESLICE_MIN, TIMESLICE_MAX},
      {"XSCHED_AUTO_XQUEUE_DEADLINE", "µs from the arrival of work", Kind::kNumber, 1, DEADLINE_MAX},
      {"XSCHED_AUTO_XQUEUE_LAXITY", "µs by which work may be delayed", Kind::kNumber, 1, DEADLINE_MAX},
      {"XSCHED_AUTO_XQUEUE_KDEADLINE",
       fmt::format("1 to {}: how many queues run at a time ({})", sched::kMostAtATime,
                   server::ReadBy(&sched::HintsRead::at_a_time)),
       Kind::kNumber, 1, int64_t{sched::kMostAtATime}},
      {"XSCHED_PREEMPT_LATENCY_US",
       "a held queue stops within so many µs (2000; 100 where the device opens its gates itself)",
       Kind::kNumber, 1, 10'000'000},
      {"XSCHED_PASSTHROUGH_LIBS", "libraries whose calls pass unscheduled, by the beginning of their names",
       Kind::kText},
      {"XSCHED_PASSTHROUGH_FILE", "a JSON file that says which libraries and functions pass unscheduled",
       Kind::kFile},
      {"XSCHED_VERBOSE", "ON: which libraries pass unscheduled, and to which runtime each is bound",
       Kind::kWord, 0, 0, kSwitch},
  };
}

VariableList VariablesOfPlatforms() {
  VariableList variables;
  for (const Platform* platform : Platforms()) {
    variables.insert(variables.end(), platform->variables.begin(), platform->variables.end());
  }
  return variables;
}

VariableList VariablesOfOurParts() {
  return {
      {"XSCHED_LIBRARY_DIR", "where the Python package finds XSched's libraries", Kind::kFile},
      {"XSCHED_LOG", "off, error, warn (default), info or debug", Kind::kWord, 0, 0, kLogLevels},
      {"XLOG_LEVEL", "the same, by its name in XSched 1.2", Kind::kWord, 0, 0, kLogLevels},
  };
}

// Lists of libraries, in which shims are.
VariableList ListsOfLibraries() {
  VariableList lists;
  for (const Platform* platform : PlatformsWithShim()) {
    if (platform->layers == nullptr) continue;
    lists.push_back(
        {platform->layers, fmt::format("{} layers, the shim among them", platform->name), Kind::kFiles});
  }
  lists.push_back({"LD_PRELOAD", "preloaded libraries", Kind::kFiles});
  return lists;
}

const VariableList& Variables() {
  static const VariableList variables = [] {
    VariableList all;
    for (const VariableList& some :
         {GeneralVariables(), VariablesOfPlatforms(), VariablesOfOurParts(), ListsOfLibraries()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return variables;
}

std::optional<int64_t> NumberIn(const std::string& text, int64_t min, int64_t max) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || errno != 0 || *end != '\0' || number < min || number > max) return std::nullopt;
  return number;
}

// "": it is not set.
std::string ValueIn(const char* const* environment, const std::string& name) {
  for (; *environment != nullptr; ++environment) {
    const std::string entry = *environment;
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

// The largest number that the variable takes.
int64_t LargestFor(const EnvironmentVariable& variable, const char* const* environment) {
  if (variable.most == nullptr) return variable.max;
  return NumberIn(ValueIn(environment, variable.most), 1, INT64_MAX).value_or(variable.max);
}

std::string NumberProblem(const EnvironmentVariable& variable, const std::string& value, int64_t max) {
  if (NumberIn(value, variable.min, max)) return "";
  return max == INT64_MAX ? fmt::format("is not a whole number from {}", variable.min)
                          : fmt::format("is not a whole number from {} to {}", variable.min, max);
}

std::string WordProblem(const EnvironmentVariable& variable, std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::string& words = variable.words;
  if (value.find(' ') == std::string::npos && words.find(" " + value + " ") != std::string::npos) return "";
  return fmt::format("is none of{}", words.substr(0, words.size() - 1));
}

// A name without a slash is looked up where libraries are; only a path can be known to be wrong.
std::string FileProblem(const std::string& path) {
  if (path.find('/') == std::string::npos || access(path.c_str(), R_OK) == 0) return "";
  return fmt::format("names {}, which cannot be read", path);
}

std::string FilesProblem(std::string list) {
  std::replace(list.begin(), list.end(), ':', ' ');
  std::istringstream paths(list);
  for (std::string path; paths >> path;) {
    if (std::string problem = FileProblem(path); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace

std::span<const EnvironmentVariable> EnvironmentVariables() { return Variables(); }

std::string ProblemOf(const EnvironmentVariable& variable, const std::string& value,
                      const char* const* environment) {
  if (value.empty()) return "";
  switch (variable.kind) {
    case Kind::kNumber:
      return NumberProblem(variable, value, LargestFor(variable, environment));
    case Kind::kWord:
      return WordProblem(variable, value);
    case Kind::kPolicy: {
      const std::string problem = PolicyProblem(value);
      return problem.empty() ? "" : fmt::format("is not used: {}", problem);
    }
    case Kind::kByteSize:
      return ReadByteSize(value.c_str()) ? "" : "is no size such as 20GiB";
    case Kind::kText:
      return "";
    case Kind::kFile:
      return FileProblem(value);
    case Kind::kFiles:
      return FilesProblem(value);
    case Kind::kSocket:
      return value.size() < sizeof(ipc::SocketPath::text) ? "" : "is too long for a socket's path";
  }
  return "";
}

std::vector<std::string> EnvironmentProblems(const char* const* environment) {
  std::vector<std::string> problems;
  for (const char* const* at = environment; *at != nullptr; ++at) {
    std::string entry = *at;
    std::string name = entry.substr(0, entry.find('='));
    std::string value = name.size() < entry.size() ? entry.substr(name.size() + 1) : "";
    auto known = std::find_if(Variables().begin(), Variables().end(),
                              [&](const EnvironmentVariable& variable) { return variable.name == name; });
    if (known == Variables().end()) {
      if (const char* instead = InsteadOfFormerVariable(name.c_str()); instead != nullptr) {
        if (!value.empty()) problems.push_back(fmt::format("{} has no effect any more: {}", name, instead));
      } else if (name.starts_with("XSCHED_")) {
        problems.push_back(fmt::format("{} is not read by anything", name));
      }
    } else if (std::string problem = ProblemOf(*known, value, environment); !problem.empty()) {
      problems.push_back(fmt::format("{}={} {}", name, value, problem));
    }
  }
  std::sort(problems.begin(), problems.end());
  return problems;
}

}  // namespace xsched::cli
