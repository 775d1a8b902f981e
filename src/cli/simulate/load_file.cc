#include "cli/simulate/load_file.h"

#include <algorithm>
#include <limits>

#include "cli/record/line_reader.h"
#include "cli/record/recording_version.h"
#include "cli/simulate/device_file.h"
#include "cli/simulate/guarantees.h"
#include "sched/core/reservation.h"

namespace xsched::cli {
namespace {

using sched::sim::kWithoutEnd;
using sched::sim::QueueLoad;
using sched::sim::Task;

// A burst that begins so soon after the end of the one before began because of it.
constexpr Duration kBackToBack = std::chrono::milliseconds(1);
// A load that nothing else ends.
constexpr Duration kLengthWithoutEnd = std::chrono::seconds(30);

// The level of a queue that does not say one: Finish gives it that of its device.
constexpr int kDeviceLevel = 0;

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// All loads together. A task takes 64 bytes, and its latency 8 for each policy.
constexpr int64_t kMostTasks = 10'000'000;

constexpr std::string_view kHintKeys[] = {
    "priority",     "lax_priority", "critical_priority", "utilization", "weight",
    "guarantee_us", "period_us",    "limit_us",          "burst_us",    "floor",
    "deadline_us",  "laxity_us",    "latency_target_us"};
constexpr std::string_view kGeneratorKeys[] = {"queue",    "commands",  "command_ns", "period_ns",
                                               "pause_ns", "jitter_ns", "until_ns",   "launch_ns",
                                               "arrivals", "seed",      "for"};

constexpr std::chrono::seconds kLongestTask{100ll * 365 * 24 * 60 * 60};

// What the scheduler decided, and what was measured: in a simulation it is otherwise.
bool IsForPeople(const JsonLine& line) {
  return line.Has("slice") || line.Has("turn") || line.Has("memory") || line.Has("in_flight");
}

// At least. Without an overflow.
std::chrono::duration<double> LengthOf(const Task& task) {
  return std::chrono::duration<double>(std::max(task.command, task.launch)) *
         static_cast<double>(task.commands);
}

// A recording of a newer XSched may have hints that this one does not know.
sched::Hints ReadHints(const JsonLine& queue, bool is_recording) {
  sched::Hints hints;
  if (!queue.Has("hints")) return hints;
  const JsonLine line = queue.Part("hints");
  if (!is_recording) line.AllowOnly(kHintKeys);
  const auto priority = [&](const char* name, Priority otherwise) {
    return static_cast<Priority>(line.Number(name, PRIORITY_NO_EXECUTE, PRIORITY_MAX, otherwise));
  };
  hints.priority = priority("priority", hints.priority);
  hints.lax_priority = priority("lax_priority", hints.lax_priority);
  hints.critical_priority = priority("critical_priority", hints.critical_priority);
  hints.utilization = static_cast<Utilization>(
      line.Number("utilization", UTILIZATION_MIN, UTILIZATION_MAX, hints.utilization));
  hints.weight = static_cast<Weight>(line.Number("weight", WEIGHT_MIN, WEIGHT_MAX, hints.weight));
  hints.guarantee_us = line.Number("guarantee_us", 0, RESERVATION_PERIOD_MAX, 0);
  hints.period_us = line.Number("period_us", 0, RESERVATION_PERIOD_MAX, 0);
  hints.limit_us = line.Number("limit_us", 0, RESERVATION_PERIOD_MAX, 0);
  hints.burst_us = line.Number("burst_us", 0, RESERVATION_PERIOD_MAX, 0);
  if (!sched::IsReservation(hints)) {
    line.Fail(fmt::format("guarantee_us, period_us, limit_us and burst_us are no reservation together: {}",
                          sched::ReservationProblem(hints)));
  }
  hints.latency_target_us =
      line.Number("latency_target_us", NO_LATENCY_TARGET, LATENCY_TARGET_MAX, hints.latency_target_us);
  hints.floor = static_cast<Floor>(line.Number("floor", FLOOR_MIN, FLOOR_MAX, hints.floor));
  hints.deadline_us = line.Number("deadline_us", NO_DEADLINE, DEADLINE_MAX, hints.deadline_us);
  hints.laxity_us = line.Number("laxity_us", NO_LAXITY, DEADLINE_MAX, hints.laxity_us);
  return hints;
}

}  // namespace

// ---- lines ----

void LoadReader::Read(std::istream& input, const std::string& name) {
  devices_.clear();
  processes_.clear();
  queues_.clear();
  is_recording_ = has_ended_ = false;
  lost_ = 0;
  LineReader lines(input, name);
  while (lines.Next()) {
    const nlohmann::json json = nlohmann::json::parse(lines.text(), nullptr, false);
    if (json.is_discarded()) {
      if (lines.is_open() && is_recording_) break;
      throw CommandError(kExitFailed, fmt::format("{}: not JSON", lines.place()));
    }
    const JsonLine line(json, lines.place());
    if (lines.number() == 1) {
      line.Number("xsched_record", kOldestRecordingVersion, kRecordingVersion);
      is_recording_ = line.Has("recorded");
      recordings_ += static_cast<size_t>(is_recording_);
    } else {
      ReadLine(line);
    }
  }
  if (lines.number() == 0) throw CommandError(kExitFailed, fmt::format("{}: empty", name));
  if (is_recording_) EndFile(name);
}

void LoadReader::EndFile(const std::string& name) {
  if (lost_ != 0) {
    warnings_.push_back(fmt::format(
        "{}: {} records were lost, because xsched record did not read them in time: some work is missing",
        name, lost_));
  }
  if (!has_ended_) warnings_.push_back(fmt::format("{}: the recording was cut off: it has no end", name));
}

void LoadReader::ReadLine(const JsonLine& line) {
  const Duration at = line.Time("t");
  if (has_ended_) line.Fail("a line after the end");
  end_ = std::max(end_, at);
  if (line.Has("device")) {
    ReadDevice(line.Part("device"));
  } else if (line.Has("process")) {
    ReadProcess(line.Part("process"));
  } else if (line.Has("queue")) {
    ReadQueue(line.Part("queue"), at);
  } else if (line.Has("burst")) {
    ReadBurst(line.Part("burst"), at);
  } else if (line.Has("gone")) {
    ReadGone(line.Part("gone"), at);
  } else if (line.Has("wait")) {
    const JsonLine wait = line.Part("wait");
    recorded_[QueueOf(wait)].waits.push_back({at, static_cast<int>(QueueOf(wait, "for"))});
  } else if (line.Has("load")) {
    ReadGenerator(line.Part("load"), at);
  } else if (line.Has("hold")) {
    ReadHold(line.Part("hold"));
  } else if (line.Has("lost")) {
    lost_ += line.Part("lost").Number("records", 1, kMost);
  } else if (line.Has("end")) {
    has_ended_ = is_recording_;
  } else if (is_recording_ && !IsForPeople(line)) {
    line.Fail("no kind of line that a recording has");
  }
}

// Holds are for people: in a simulation, other queues are held.
void LoadReader::ReadHold(const JsonLine& hold) const {
  QueueOf(hold);
  hold.Time("span_ns");
}

size_t LoadReader::Find(const JsonLine& line, const char* key, const Numbers& numbers) {
  const int64_t number = line.Number(key, 0, kMost);
  const auto found = numbers.find(number);
  if (found == numbers.end()) line.Fail(fmt::format("{} {} has no line before this one", key, number));
  return found->second;
}

size_t LoadReader::QueueOf(const JsonLine& line, const char* key) const { return Find(line, key, queues_); }

void LoadReader::ReadDevice(const JsonLine& device) {
  sched::sim::DeviceParameters parameters = KnownDevice(device.Text("platform", ""));
  parameters.name = device.Text("name", parameters.name);
  parameters.level = static_cast<int>(device.Number("level", 1, 3, parameters.level));
  if (device.Has("parameters")) ReadParameters(device.Part("parameters"), parameters);
  const auto same = std::find_if(load_.devices.begin(), load_.devices.end(), [&](const auto& other) {
    return other.name == parameters.name && other.platform == parameters.platform;
  });
  // Two devices of one file are two, also if they have the same name.
  const auto known = static_cast<size_t>(same - load_.devices.begin());
  const bool is_new =
      same == load_.devices.end() || std::any_of(devices_.begin(), devices_.end(),
                                                 [&](const auto& number) { return number.second == known; });
  devices_[device.Number("id", 0, kMost)] = is_new ? load_.devices.size() : known;
  if (is_new) load_.devices.push_back(std::move(parameters));
}

void LoadReader::ReadProcess(const JsonLine& process) {
  const int64_t id = process.Number("id", 0, kMost);
  const std::string job = process.Text("job", "");
  uint64_t number = 0;
  if (!job.empty())
    number = jobs_.try_emplace({is_recording_ ? recordings_ : 0, job}, jobs_.size() + 1).first->second;
  processes_[id] = load_.processes.size();
  load_.processes.push_back(
      {process.Text("name", fmt::format("p{}", id)), number, TenantNamed(process.Text("tenant", ""))});
}

uint64_t LoadReader::TenantNamed(const std::string& name) {
  if (name.empty()) return 0;
  const auto [known, is_new] = tenants_.try_emplace(name, tenants_.size() + 1);
  if (is_new) load_.tenant_names.push_back(name);
  return known->second;
}

void LoadReader::ReadQueue(const JsonLine& queue, Duration at) {
  const int64_t id = queue.Number("id", 0, kMost);
  const sched::Hints hints = ReadHints(queue, is_recording_);
  if (const auto known = queues_.find(id); known != queues_.end()) {
    load_.queues[known->second].changes.push_back({at, hints});
    return;
  }
  QueueLoad load;
  load.process = static_cast<int>(Find(queue, "process", processes_));
  load.device = static_cast<int>(Find(queue, "device", devices_));
  load.level = static_cast<int>(queue.Number("level", 1, 3, kDeviceLevel));
  load.from = at;
  load.hints = hints;
  load.name = queue.Text("name", "");
  queues_[id] = load_.queues.size();
  load_.queues.push_back(std::move(load));
  recorded_.emplace_back();
}

void LoadReader::ReadBurst(const JsonLine& line, Duration at) {
  constexpr auto kMostCommands = static_cast<int64_t>(kWithoutEnd) / 4;
  RecordedBurst burst;
  burst.at = at;
  burst.span = line.Time("span_ns", Duration::zero());
  burst.commands = static_cast<uint64_t>(std::max<int64_t>(1, line.Number("commands", 0, kMostCommands)));
  burst.device = line.Time("device_ns");
  burst.follows = line.Flag("continued");
  burst.unseen = line.Flag("unseen");
  end_ = std::max(end_, at + burst.span);
  recorded_[QueueOf(line)].bursts.push_back(burst);
}

void LoadReader::ReadGone(const JsonLine& gone, Duration at) {
  if (gone.Has("queue")) {
    load_.queues[QueueOf(gone)].gone = at;
    return;
  }
  const auto process = static_cast<int>(Find(gone, "process", processes_));
  for (QueueLoad& queue : load_.queues) {
    if (queue.process == process) queue.gone = at;
  }
}

void LoadReader::ReadGenerator(const JsonLine& line, Duration at) {
  line.AllowOnly(kGeneratorKeys);
  Generator generator{};
  generator.place = line.place();
  generator.queue = QueueOf(line);
  generator.ends = line.Has("until_ns");
  generator.arrivals.from = at;
  generator.arrivals.until = line.Time("until_ns", Duration::zero());
  generator.arrivals.period = line.Time("period_ns", Duration::zero());
  if (line.Has("period_ns") && generator.arrivals.period == Duration::zero())
    line.Fail("period_ns must not be 0");
  generator.arrivals.jitter = line.Time("jitter_ns", Duration::zero());
  generator.arrivals.seed = static_cast<uint64_t>(line.Number("seed", 0, kMost, 1));
  const std::string arrivals = line.Text("arrivals", "periodic");
  if (arrivals != "periodic" && arrivals != "poisson") line.Fail("arrivals must be periodic or poisson");
  generator.arrivals.poisson = arrivals == "poisson";
  if (line.Has("arrivals") && !line.Has("period_ns")) line.Fail("arrivals need a period_ns");
  Task& task = generator.task;
  task.at = at;
  task.command = line.Time("command_ns");
  if (task.command == Duration::zero()) line.Fail("command_ns must not be 0");
  task.commands = static_cast<uint64_t>(line.Number("commands", 1, kMost, 1));
  task.launch = line.Time("launch_ns", Duration::zero());
  if (LengthOf(task) > kLongestTask) line.Fail("the commands of a task together take more than a century");
  if (line.Has("for")) {
    const size_t target = QueueOf(line, "for");
    if (target == generator.queue) line.Fail("for: a queue that waits for itself never runs");
    task.waits_for = static_cast<int>(target);
  }
  if (line.Has("pause_ns")) {
    if (generator.arrivals.period > Duration::zero()) line.Fail("pause_ns and period_ns exclude each other");
    task.repeat = line.Time("pause_ns");
  } else if (generator.arrivals.period == Duration::zero()) {
    task.commands = kWithoutEnd;
  }
  if (generator.ends) end_ = std::max(end_, generator.arrivals.until);
  generators_.push_back(generator);
}

// ---- the load ----

// From what the queue was given in the past to what it is given in the simulation.
void LoadReader::AddBursts(size_t index) {
  Recorded& recorded = recorded_[index];
  std::vector<Task>& tasks = load_.queues[index].tasks;
  std::stable_sort(recorded.bursts.begin(), recorded.bursts.end(),
                   [](const RecordedBurst& one, const RecordedBurst& other) { return one.at < other.at; });
  EstimateUnseen(recorded.bursts);
  std::stable_sort(recorded.waits.begin(), recorded.waits.end(),
                   [](const Wait& one, const Wait& other) { return one.at < other.at; });
  auto wait = recorded.waits.begin();
  Duration ended{-1};
  for (const RecordedBurst& burst : recorded.bursts) {
    Task task;
    task.at = burst.at;
    task.commands = burst.commands;
    task.command = std::max(burst.device / static_cast<int64_t>(burst.commands), Duration(1));
    if (!tasks.empty() && (burst.follows || burst.at - ended < kBackToBack)) {
      task.follows = true;
      task.at = std::max(Duration::zero(), burst.at - ended);
    }
    ended = burst.at + burst.span;
    // A wait belongs to the burst in which it began, or to the next one.
    for (; wait != recorded.waits.end() && wait->at < std::max(ended, burst.at + Duration(1)); ++wait)
      task.waits_for = wait->queue;
    tasks.push_back(task);
  }
}

void LoadReader::AddGenerated(Duration length, const std::optional<sched::sim::DeviceParameters>& device) {
  for (Generator& generator : generators_) {
    const std::optional<Duration> gone = load_.queues[generator.queue].gone;
    Duration until = generator.ends ? generator.arrivals.until : length;
    if (gone) until = std::min(until, *gone);
    Task& task = generator.task;
    task.until = generator.arrivals.until = until;
    if (task.at >= until) continue;
    QueueLoad& queue = load_.queues[generator.queue];
    if (generator.arrivals.period == Duration::zero()) {
      const auto& on = device ? *device : load_.devices[static_cast<size_t>(queue.device)];
      if (task.repeat != sched::sim::kNoRepeat) CountTasks(generator, task.repeat + on.command_latency);
      queue.tasks.push_back(task);
      continue;
    }
    CountTasks(generator, generator.arrivals.period);
    const std::vector<Duration> times = TimesOf(generator.arrivals);
    const size_t before = queue.tasks.size();
    queue.tasks.resize(before + times.size(), task);  // with memory for all of them at once
    for (size_t i = 0; i < times.size(); ++i) queue.tasks[before + i].at = times[i];
  }
}

// `pause`: between two tasks, or the time of each if they come periodically.
void LoadReader::CountTasks(const Generator& generator, Duration pause) {
  const bool repeats = generator.task.repeat != sched::sim::kNoRepeat;
  const std::chrono::duration<double> each = pause + (repeats ? LengthOf(generator.task) : Duration::zero());
  const std::chrono::duration<double> time = generator.arrivals.until - generator.task.at;
  if (time / each + 1 <= static_cast<double>(kMostTasks - tasks_)) {
    tasks_ += static_cast<int64_t>(time / each) + 1;
    return;
  }
  throw CommandError(
      kExitFailed,
      fmt::format("{}: with this line the load has more than {} tasks: give a longer {}, or end it "
                  "sooner, by until_ns or --seconds",
                  generator.place, kMostTasks, repeats ? "pause_ns" : "period_ns"));
}

std::vector<std::vector<RecordedBurst>> LoadReader::recorded() const {
  std::vector<std::vector<RecordedBurst>> all;
  for (const Recorded& queue : recorded_) all.push_back(queue.bursts);
  return all;
}

// A queue is there from its first line on. What comes before that, or before the end of the work that the
// queue was given earlier, is not lost.
void LoadReader::SetTimes() {
  for (QueueLoad& queue : load_.queues) {
    if (!queue.tasks.empty()) queue.from = std::min(queue.from, queue.tasks.front().at);
    if (queue.gone) queue.gone = std::max(*queue.gone, queue.from);
    std::stable_sort(queue.changes.begin(), queue.changes.end(),
                     [](const auto& one, const auto& other) { return one.at < other.at; });
    std::erase_if(queue.changes, [&](const sched::sim::HintChange& change) {
      return change.at > load_.length || (queue.gone && change.at >= *queue.gone);
    });
  }
}

// A queue without a name has that of its process, and a number where there are several.
void LoadReader::NameQueues() {
  std::map<std::string, int> seen;
  for (QueueLoad& queue : load_.queues) {
    if (!queue.name.empty()) continue;
    queue.name = load_.processes[static_cast<size_t>(queue.process)].name;
    if (const int number = ++seen[queue.name]; number > 1) queue.name += fmt::format("#{}", number);
  }
}

// As a server does. Of what was recorded, a server has taken care.
void LoadReader::CheckGuarantees() const {
  if (recordings_ != 0) return;
  const Guaranteed most = MostGuaranteed(load_, {});
  if (most.CanBeKept()) return;
  throw CommandError(kExitFailed,
                     fmt::format("the guarantees on {} are {:.1f} % of it from t {} on: lower guarantee_us",
                                 load_.devices[most.device].name, most.part * 100, most.at.count()));
}

sched::sim::Load LoadReader::Finish(std::optional<Duration> length,
                                    const std::optional<sched::sim::DeviceParameters>& device) {
  load_.length = length ? *length : end_ > Duration::zero() ? end_ : kLengthWithoutEnd;
  for (size_t i = 0; i < recorded_.size(); ++i) AddBursts(i);
  AddGenerated(load_.length, device);
  for (size_t i = 0; i < recorded_.size(); ++i) {
    if (!recorded_[i].bursts.empty()) continue;  // they are in order, and some follow others
    std::vector<Task>& tasks = load_.queues[i].tasks;
    const auto comes_before = [](const Task& one, const Task& other) { return one.at < other.at; };
    // Those of one line are in order.
    if (!std::is_sorted(tasks.begin(), tasks.end(), comes_before))
      std::stable_sort(tasks.begin(), tasks.end(), comes_before);
  }
  SetTimes();
  NameQueues();
  CheckGuarantees();
  if (device) {
    for (sched::sim::DeviceParameters& parameters : load_.devices) parameters = *device;
  }
  for (QueueLoad& queue : load_.queues) {
    const int level = load_.devices[static_cast<size_t>(queue.device)].level;
    if (queue.level == kDeviceLevel) queue.level = level;
    // A recording's devices have the level of their first queue, which is not that of all.
    if (device) queue.level = std::min(queue.level, level);
  }
  return std::move(load_);
}

}  // namespace xsched::cli
