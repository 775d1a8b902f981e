// The SPANK plugin: options of srun, sbatch and salloc, and the environment of a job's tasks. It runs in
// Slurm's own processes. It never fails a job: where XSched cannot be used, the job runs natively.
//
//   srun, sbatch, salloc    the options are checked, and Slurm passes them on to the node
//   slurmd                  the arguments of plugstack.conf are checked, once
//   slurmstepd              the environment of the step's tasks is set, before they start
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

#include "slurm/settings.h"
#include "slurm/task_environment.h"

// Slurm finds these by their names. Its header is C's: it has functions of C++ without this, and constants
// that no other file sees.
#pragma GCC visibility push(default)
extern "C" {
#include <slurm/spank.h>
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(xsched, 1)
}
#pragma GCC visibility pop

namespace xsched::slurm {
namespace {

constexpr size_t kMostText = 256;

// What the job's options say. A process of Slurm has one job.
Values options;

int TakeOption(int setting, const char* text, int /*remote*/) {
  Result<int> value = ParseSetting(static_cast<Setting>(setting), text == nullptr ? "" : text);
  if (!value) {
    slurm_error("xsched: %s", value.error().text());
    return -1;
  }
  options[static_cast<size_t>(setting)] = *value;
  return 0;
}

spank_option kOptions[kSettings] = {
    {const_cast<char*>("xsched-priority"), const_cast<char*>("N"), nullptr, 1, kPriority, TakeOption},
    {const_cast<char*>("xsched-utilization"), const_cast<char*>("P"), nullptr, 1, kUtilization, TakeOption},
    {const_cast<char*>("xsched-weight"), const_cast<char*>("N"), nullptr, 1, kWeight, TakeOption},
};

Rules RulesFor(const Job& job, int count, char** arguments) {
  Rules rules{.program = XSCHED_PROGRAM};
  for (int i = 0; i < count; ++i) {
    // Once on each node, not in the output of each job.
    if (Result<> applied = Apply(arguments[i], job, rules); !applied && spank_context() == S_CTX_SLURMD)
      slurm_error("xsched: this argument in plugstack.conf is ignored: %s", applied.error().text());
  }
  return rules;
}

// A variable of the job, "" if it has none or a longer one.
class Variable {
 public:
  Variable(spank_t spank, const char* name) {
    if (spank_getenv(spank, name, text_, sizeof text_) != ESPANK_SUCCESS) text_[0] = '\0';
  }
  const char* text() const { return text_; }

 private:
  char text_[kMostText] = "";
};

template <typename Number>
Number ItemOr(spank_t spank, spank_item item, Number otherwise) {
  Number value{};
  return spank_get_item(spank, item, &value) == ESPANK_SUCCESS ? value : otherwise;
}

char** EnvironmentOf(spank_t spank) { return ItemOr<char**>(spank, S_JOB_ENV, nullptr); }

bool Has(char* const* environment, std::string_view entry) {
  for (; *environment != nullptr; ++environment)
    if (*environment == entry) return true;
  return false;
}

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

size_t Count(char* const* environment) {
  size_t count = 0;
  while (environment[count] != nullptr) ++count;
  return count;
}

bool IsIn(const Text& wanted, std::string_view name) {
  bool is_there = false;
  wanted.ForEach([&](std::string_view entry) { is_there = is_there || NameOf(entry) == name; });
  return is_there;
}

// SPANK also says that it has unset what it cannot, such as an entry without '='. That stays.
void UnsetThoseThatAreNotIn(const Text& wanted, spank_t spank) {
  size_t count = 0;
  for (size_t at = 0; at < (count = Count(EnvironmentOf(spank)));) {
    const std::string_view name = NameOf(EnvironmentOf(spank)[at]);
    char ended[kMostText] = "";
    if (name.size() < sizeof ended && !IsIn(wanted, name)) {
      name.copy(ended, name.size());
      spank_unsetenv(spank, ended);
    }
    if (Count(EnvironmentOf(spank)) >= count) ++at;
  }
}

// Each call may move the environment of the job.
void SetEnvironment(const Text& wanted, spank_t spank) {
  wanted.ForEach([&](std::string_view entry) {
    const std::string_view name = NameOf(entry);
    char ended[kMostText] = "";
    if (name.size() == entry.size() || name.size() >= sizeof ended || Has(EnvironmentOf(spank), entry))
      return;
    name.copy(ended, name.size());
    spank_setenv(spank, ended, entry.data() + name.size() + 1, 1);
  });
  UnsetThoseThatAreNotIn(wanted, spank);
}

// To the user if the job has an option of ours, and otherwise to the node's log.
void Say(const char* text) {
  const bool is_asked_for = options != Values{};
  is_asked_for ? slurm_spank_log("xsched: %s", text) : slurm_info("xsched: %s", text);
}

void SayWhatIsLowered(const Decision& decision, const Job& job) {
  for (int i = 0; i < kSettings; ++i) {
    if (!decision.lowered_from[i]) continue;
    slurm_spank_log(
        "xsched: %s %d is lowered to %d, the highest for this job (partition %s, account %s, QOS %s%s)",
        kSettingInfo[i].name, *decision.lowered_from[i], *decision.values[i], job.partition.data(),
        job.account.empty() ? "-" : job.account.data(), job.qos.empty() ? "-" : job.qos.data(),
        job.shards != 0 ? ", shards" : "");
  }
}

// Whether it is no name that a user has chosen: ours, of the job of which this is a step, or one that `xsched
// run` has made (16 digits), for example for the shell that ran sbatch.
bool IsMadeByXSched(std::string_view job) {
  constexpr size_t kDigits = 16;
  return job.empty() || job.starts_with("slurm-") ||
         (job.size() == kDigits && job.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

// All processes of a step belong together.
void SetJob(spank_t spank) {
  const auto job = ItemOr<uint32_t>(spank, S_JOB_ID, 0);
  const auto step = ItemOr<uint32_t>(spank, S_JOB_STEPID, 0);
  char name[32];
  snprintf(name, sizeof name, "slurm-%u.%u", job, step);
  spank_setenv(spank, "XSCHED_JOB", name, 1);
}

void PrepareTasks(spank_t spank, int count, char** arguments) {
  const Variable partition(spank, "SLURM_JOB_PARTITION");
  const Variable account(spank, "SLURM_JOB_ACCOUNT");
  const Variable qos(spank, "SLURM_JOB_QOS");
  Job job{.partition = partition.text(), .account = account.text(), .qos = qos.text(), .options = options};
  job.shards = static_cast<uint32_t>(strtoul(Variable(spank, "SLURM_SHARDS_ON_NODE").text(), nullptr, 10));
  job.tasks = ItemOr<uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT, 1);
  for (int i = 0; i < kSettings; ++i) {
    Result<int> value =
        ParseSetting(static_cast<Setting>(i), Variable(spank, kSettingInfo[i].variable).text());
    if (value) job.variables[i] = *value;
  }
  const Rules rules = RulesFor(job, count, arguments);
  const Decision decision = Decide(rules, job);
  if (decision.values == Values{} || EnvironmentOf(spank) == nullptr) return;
  // Once for the job's step, not on each node.
  if (ItemOr<uint32_t>(spank, S_JOB_NODEID, 0) == 0) SayWhatIsLowered(decision, job);

  Result<Text> wanted = EnvironmentByXSched(rules.program, decision.values, EnvironmentOf(spank));
  if (!wanted) {
    char node[kMostText] = "this node";
    gethostname(node, sizeof node - 1);
    Say(Error::Make("the job runs unscheduled on %s: %s", node, wanted.error().text()).text());
    return;
  }
  if (wanted->warning[0] != '\0') Say(wanted->warning);
  // Asked first: `xsched run` has made a name for this step as well.
  const bool is_named_by_user = !IsMadeByXSched(Variable(spank, "XSCHED_JOB").text());
  SetEnvironment(*wanted, spank);
  if (!is_named_by_user) SetJob(spank);
}

}  // namespace
}  // namespace xsched::slurm

#pragma GCC visibility push(default)
extern "C" int slurm_spank_init(spank_t spank, int count, char** arguments) {
  using namespace xsched::slurm;
  options = {};
  if (spank_context() == S_CTX_SLURMD) {
    RulesFor(Job{}, count, arguments);
    return 0;
  }
  for (int i = 0; i < kSettings; ++i) {
    kOptions[i].usage = const_cast<char*>(kSettingInfo[i].usage);
    spank_option_register(spank, &kOptions[i]);
  }
  return 0;
}

extern "C" int slurm_spank_user_init(spank_t spank, int count, char** arguments) {
  xsched::slurm::PrepareTasks(spank, count, arguments);
  return 0;
}
#pragma GCC visibility pop
