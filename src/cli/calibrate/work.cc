#include "cli/calibrate/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <fstream>
#include <thread>

#include "cli/calibrate/work_device.h"
#include "cli/doctor/probe_child.h"
#include "cli/exit_codes.h"
#include "cli/json_text.h"
#include "cli/platform.h"

namespace xsched::cli {
namespace {

using nlohmann::json;

constexpr Duration kLookEvery = std::chrono::milliseconds(1);
// A device's clocks rise in this time.
constexpr Duration kWarmUp = std::chrono::milliseconds(300);
constexpr int kLaunches = 20;
constexpr int kTries = 8;
constexpr uint32_t kFirstLoops = 64;
constexpr uint32_t kMostLoops = 1u << 30;
constexpr Duration kLongKernel = std::chrono::milliseconds(1);
constexpr double kLongestLoops = 4e9;

void Say(const std::string& line) {
  fmt::print("{}{}\n", kAnswerMark, line);
  std::fflush(stdout);
}

// ---- the speed of the kernel ----

double BestTime(WorkQueue& queue, uint32_t loops) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const TimePoint begin = MonotonicClock::now();
    for (int launch = 0; launch < kLaunches; ++launch) queue.Launch(loops);
    queue.Finish();
    const double time = static_cast<double>((MonotonicClock::now() - begin).count()) / kLaunches;
    best = i == 0 ? time : std::min(best, time);
  }
  return best;
}

KernelSpeed MeasureSpeed(WorkQueue& queue) {
  for (const TimePoint begin = MonotonicClock::now(); MonotonicClock::now() - begin < kWarmUp;) {
    queue.Launch(kFirstLoops);
    queue.Finish();
  }
  uint32_t loops = kFirstLoops;
  double half = BestTime(queue, loops / 2);
  double whole = BestTime(queue, loops);
  while (whole < static_cast<double>(kLongKernel.count()) && loops < kMostLoops) {
    loops *= 2;
    half = whole;
    whole = BestTime(queue, loops);
  }
  const double per_loop = (whole - half) / (0.5 * loops);  // loops is a power of 2
  if (per_loop <= 0) throw CommandError(kExitFailed, "the device is too busy to be measured");
  return {std::max(0.0, whole - per_loop * loops), per_loop};
}

uint32_t LoopsOf(Duration length, const KernelSpeed& speed) {
  const double loops = (static_cast<double>(length.count()) - speed.base_ns) / speed.ns_per_loop;
  return static_cast<uint32_t>(std::clamp(std::round(loops), 1.0, kLongestLoops));
}

// ---- the work of a queue, until `end` ----

void RunTasks(WorkQueue& queue, const QueueWork& work, uint32_t loops, TimePoint end,
              std::vector<Span>& spans) {
  TimePoint done = MonotonicClock::now();
  for (uint64_t task = 0;; ++task) {
    const TimePoint begin_at = done + PauseBefore(work, task);
    if (begin_at >= end) return;
    SleepFor(begin_at - MonotonicClock::now());
    const TimePoint begin = MonotonicClock::now();
    for (int i = 0; i < work.commands; ++i) queue.Launch(loops);
    queue.Finish();
    done = MonotonicClock::now();
    spans.push_back({begin.time_since_epoch(), done.time_since_epoch()});
  }
}

void RunAlways(WorkQueue& queue, uint32_t loops, TimePoint end, std::vector<Span>& spans) {
  std::vector<Duration> launched(WorkQueue::kMarks);
  for (size_t i = 0; MonotonicClock::now() < end; ++i) {
    const size_t mark = i % WorkQueue::kMarks;
    if (i >= WorkQueue::kMarks) {
      queue.Wait(mark);
      spans.push_back({launched[mark], MonotonicClock::now().time_since_epoch()});
    }
    launched[mark] = MonotonicClock::now().time_since_epoch();
    queue.LaunchMarked(loops, mark);
  }
  queue.Finish();
}

TimePoint StartFrom(const std::string& path) {
  int64_t start = 0;
  while (!(std::ifstream(path) >> start)) SleepFor(kLookEvery);
  return TimePoint(Duration(start));
}

std::vector<std::vector<Span>> RunQueues(WorkDevice& device, const WorkJob& job) {
  std::vector<std::unique_ptr<WorkQueue>> queues;
  for (size_t i = 0; i < job.queues.size(); ++i) {
    queues.push_back(device.NewQueue());
    queues.back()->Launch(1);
    queues.back()->Finish();
  }
  Say("ready");
  const TimePoint start = StartFrom(job.start);
  std::vector<std::vector<Span>> spans(queues.size());
  std::vector<std::exception_ptr> errors(queues.size());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < queues.size(); ++i) {
    const QueueWork& work = job.queues[i];
    if (work.commands == 0) continue;
    threads.emplace_back([&, i] {
      try {
        device.EnterThread();
        SleepFor(start - MonotonicClock::now());
        const uint32_t loops = LoopsOf(work.command, job.speed);
        if (work.pause) {
          RunTasks(*queues[i], work, loops, start + job.length, spans[i]);
        } else {
          RunAlways(*queues[i], loops, start + job.length, spans[i]);
        }
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  threads.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return spans;
}

// ---- the job and the answer as JSON ----

json JsonOf(const KernelSpeed& speed) {
  return {{"base_ns", speed.base_ns}, {"ns_per_loop", speed.ns_per_loop}};
}
KernelSpeed SpeedFrom(const json& value) { return {value.at("base_ns"), value.at("ns_per_loop")}; }

WorkJob JobFrom(const json& value) {
  WorkJob job{.platform = value.at("platform"),
              .speed = SpeedFrom(value.at("speed")),
              .queues = {},
              .length = Duration(value.at("length_ns").get<int64_t>()),
              .start = value.at("start")};
  for (const json& queue : value.at("queues")) {
    QueueWork work{.command = Duration(queue.at("command_ns").get<int64_t>()),
                   .commands = queue.at("commands")};
    if (queue.contains("pause_ns")) work.pause = Duration(queue["pause_ns"].get<int64_t>());
    work.spread = Duration(queue.at("spread_ns").get<int64_t>());
    job.queues.push_back(work);
  }
  return job;
}

json AnswerOf(WorkDevice& device, const WorkJob& job) {
  if (job.queues.empty()) {
    Say("ready");
    const std::unique_ptr<WorkQueue> queue = device.NewQueue();
    return {{"name", device.Name()}, {"speed", JsonOf(MeasureSpeed(*queue))}};
  }
  json answer = json::array();
  for (const std::vector<Span>& spans : RunQueues(device, job)) {
    json& list = answer.emplace_back(json::array());
    for (const Span& span : spans) list.push_back(json::array({span.begin.count(), span.end.count()}));
  }
  return answer;
}

json Answered(const std::string& answer) {
  json value = json::parse(answer, nullptr, false);
  if (value.is_discarded()) throw CommandError(kExitFailed, "a program gave no answer: " + answer);
  return value;
}

}  // namespace

json JsonOf(const WorkJob& job) {
  json queues = json::array();
  for (const QueueWork& work : job.queues) {
    json queue = {{"command_ns", work.command.count()},
                  {"commands", work.commands},
                  {"spread_ns", work.spread.count()}};
    if (work.pause) queue["pause_ns"] = work.pause->count();
    queues.push_back(std::move(queue));
  }
  return {{"platform", job.platform},
          {"speed", JsonOf(job.speed)},
          {"queues", std::move(queues)},
          {"length_ns", job.length.count()},
          {"start", job.start}};
}

void DoWork(const std::string& text) {
  const WorkJob job = JobFrom(json::parse(text));
  const Platform* platform = FindPlatformById(job.platform);
  if (platform == nullptr || platform->open_work_device == nullptr)
    throw CommandError(kExitUsage, fmt::format("{} cannot be calibrated", job.platform));
  try {
    Say(JsonText(AnswerOf(*platform->open_work_device(), job), -1));
  } catch (const ProbeError& error) {
    throw CommandError(kExitFailed, error.text);
  }
}

DeviceFacts FactsFrom(const std::string& answer) {
  const json value = Answered(answer);
  return {value.at("name"), SpeedFrom(value.at("speed"))};
}

std::vector<std::vector<Span>> SpansFrom(const std::string& answer) {
  std::vector<std::vector<Span>> spans;
  for (const json& list : Answered(answer)) {
    std::vector<Span>& queue = spans.emplace_back();
    for (const json& span : list)
      queue.push_back({Duration(span.at(0).get<int64_t>()), Duration(span.at(1).get<int64_t>())});
  }
  return spans;
}

}  // namespace xsched::cli
