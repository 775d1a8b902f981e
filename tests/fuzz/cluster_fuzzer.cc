// A libFuzzer target for what clusters and their users say: pods and PriorityClasses as the API server lists
// them, the kubelet's choice of devices, and what a Slurm job asks for. The first byte says which one, and
// the rest is what it reads.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "kubernetes/pods.h"
#include "kubernetes/shares.h"
#include "slurm/settings.h"
#include "slurm/task_environment.h"

using namespace xsched;

namespace {

// The list of pods, a zero, the list of PriorityClasses.
void ReadPods(fuzz::Bytes& bytes) {
  const int most = static_cast<int>(bytes.Below(8));
  auto pods = kubernetes::ReadPods(bytes.Until('\0'));
  auto classes = kubernetes::ReadPriorityClasses(bytes.Rest());
  if (!pods) return;
  const kubernetes::ClassPriorities known = classes ? *classes : kubernetes::ClassPriorities{};
  for (const auto& [uid, pod] : *pods) {
    const kubernetes::PodPriority result = kubernetes::PriorityOf(pod, known, most);
    // A pod's own words give it no more than its class has, and nothing more than everybody has without one.
    if (result.highest > most || (result.priority && *result.priority > result.highest)) abort();
    if (!known.contains(pod.priority_class) && result.highest > 0) abort();
  }
}

// Rows of shares of some GPUs, and now and then an id of any text.
std::vector<std::string> AnyShares(fuzz::Bytes& bytes) {
  std::vector<std::string> ids;
  for (uint32_t rows = bytes.Below(4); rows > 0; --rows) {
    const uint32_t gpu = bytes.Below(4);
    if (gpu == 3) {
      ids.emplace_back(bytes.Until('\n'));
      continue;
    }
    const uint32_t first = bytes.Below(kubernetes::kSharesOfGpu + 1);
    const uint32_t end = bytes.Below(kubernetes::kSharesOfGpu + 1);
    for (uint32_t number = first; number < end; ++number)
      ids.push_back(kubernetes::IdOf({"GPU-" + std::to_string(gpu), static_cast<int>(number)}));
  }
  return ids;
}

void ChooseShares(fuzz::Bytes& bytes) {
  const std::vector<std::string> available = AnyShares(bytes);
  const std::vector<std::string> required = AnyShares(bytes);
  const int size =
      bytes.Below(6) == 0 ? 100 * static_cast<int>(bytes.Below(4)) : static_cast<int>(bytes.Below(120)) - 1;
  static_cast<void>(kubernetes::AllocationOf(available));
  auto chosen = kubernetes::PreferredShares(available, required, size);
  if (!chosen) return;
  const auto has = [](const std::vector<std::string>& ids, const std::string& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  if (chosen->size() != static_cast<size_t>(size)) abort();
  for (const std::string& id : required) {
    if (!has(*chosen, id)) abort();
  }
  for (const std::string& id : *chosen) {
    if (!has(available, id)) abort();
  }
  // What is proposed can be allocated.
  if (!kubernetes::AllocationOf(*chosen)) abort();
}

// Lines: the job's partition, account and quality of service, what its options and its environment say, and
// the arguments of plugstack.conf.
void DecideJob(fuzz::Bytes& bytes) {
  slurm::Job job;
  job.shards = bytes.Below(40);
  job.tasks = bytes.Below(9);
  job.partition = bytes.Until('\n');
  job.account = bytes.Until('\n');
  job.qos = bytes.Until('\n');
  for (slurm::Values* values : {&job.options, &job.variables}) {
    for (int i = 0; i < slurm::kSettings; ++i) {
      auto read = slurm::ParseSetting(static_cast<slurm::Setting>(i), bytes.Until('\n'));
      if (read) (*values)[static_cast<size_t>(i)] = *read;
    }
  }
  slurm::Rules rules;
  std::vector<std::string> arguments;
  while (!bytes.empty()) arguments.emplace_back(bytes.Until('\n'));
  for (const std::string& argument : arguments) static_cast<void>(slurm::Apply(argument.c_str(), job, rules));
  const slurm::Decision decision = slurm::Decide(rules, job);
  for (size_t i = 0; i < slurm::kSettings; ++i) {
    const auto& info = slurm::kSettingInfo[i];
    const auto& value = decision.values[i];
    if (value && (*value < info.min || *value > info.max)) abort();
    if (value && rules.caps[i] && *value > *rules.caps[i]) abort();
  }
}

// The environment that a task gets, as the user's `xsched run … env -0` wrote it.
void ReadEnvironment(fuzz::Bytes& bytes) {
  const std::string_view rest = bytes.Rest();
  slurm::Text text;
  text.size = rest.size();
  text.memory.reset(static_cast<char*>(calloc(rest.size() + 1, 1)));
  if (!rest.empty()) memcpy(text.memory.get(), rest.data(), rest.size());
  size_t sum = 0;
  text.ForEach([&](std::string_view entry) { sum += entry.size() + 1; });
  if (sum < rest.size()) abort();
}

constexpr void (*kReaders[])(fuzz::Bytes&) = {ReadPods, ChooseShares, DecideJob, ReadEnvironment};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Bytes bytes({data, size});
  kReaders[bytes.Below(std::size(kReaders))](bytes);
  return 0;
}
