#include "cli/run/job_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string.h>

#include <algorithm>

#include "cli/explain/explanation.h"

namespace xsched::cli {
namespace {

using Json = nlohmann::ordered_json;
using Process = ProcessWaits::Process;

// A text has so many processes at most. JSON has all.
constexpr size_t kMentioned = 8;
// It takes a moment until the server records.
constexpr Duration kNotMissed = std::chrono::milliseconds(100);

// Those with the most device time first.
std::vector<const Process*> ProcessesOf(const JobOutcome& outcome, const ProcessWaits& waits) {
  std::vector<const Process*> processes;
  for (const auto& [number, process] : waits.processes()) {
    if (process.job == outcome.job) processes.push_back(&process);
  }
  std::stable_sort(processes.begin(), processes.end(), [](const Process* one, const Process* other) {
    return one->device_time > other->device_time;
  });
  return processes;
}

Process Sum(const JobOutcome& outcome, const std::vector<const Process*>& processes) {
  Process sum;
  sum.job = outcome.job;
  for (const Process* process : processes) sum.Add(*process);
  return sum;
}

std::string StatusText(int status) {
  return status >= 0 ? fmt::format("exit status {}", status)
                     : fmt::format("ended by signal {} ({})", -status, strsignal(-status));
}

std::string MissingText(const JobOutcome& outcome, const ProcessWaits& waits) {
  std::string text;
  if (outcome.missing >= std::min(kNotMissed, outcome.length / 2)) {
    text += fmt::format("  What happened in {} of this time is missing{}{}.\n", TimeText(outcome.missing),
                        outcome.problem.empty() ? "" : ": ", outcome.problem);
  } else if (!outcome.problem.empty()) {
    text += fmt::format("  The end is missing: {}.\n", outcome.problem);
  }
  if (waits.lost() != 0) text += fmt::format("  {} records were lost.\n", waits.lost());
  if (outcome.job_is_older)
    text += "  It is a part of a job that began earlier: this is about all programs of the job.\n";
  return text;
}

double Milliseconds(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

Json WaitsJson(const Process& process, const ProcessWaits& waits) {
  Json all = Json::array();
  for (const auto& [because, wait] : process.waits) {
    Json one = {{"why", because.reason->word}, {"seconds", InSeconds(wait.time)}, {"times", wait.times}};
    if (const auto other = waits.processes().find(because.process); other != waits.processes().end()) {
      one["because_of"] = {
          {"pid", other->second.pid}, {"name", other->second.name}, {"priority", because.priority}};
    }
    all.push_back(std::move(one));
  }
  return all;
}

// The name of each, so the same name may be there several times.
Json DevicesJson(const Process& process) {
  Json names = Json::array();
  for (const auto& [number, name] : process.devices) names.push_back(name);
  return names;
}

Json FindingsJson(const Process& process, const ProcessWaits& waits) {
  Duration held{};
  for (const auto& [because, wait] : process.waits) held += wait.time;
  return {{"queues", process.queues},
          {"devices", DevicesJson(process)},
          {"requests",
           {{"count", process.requests.count()},
            {"p50_ms", Milliseconds(process.requests.Percentile(0.5))},
            {"p99_ms", Milliseconds(process.requests.Percentile(0.99))},
            {"longest_ms", Milliseconds(process.requests.largest())},
            {"not_finished", process.unfinished},
            {"of_unknown_length", process.unseen}}},
          {"busy_seconds", InSeconds(process.busy)},
          {"device_seconds", InSeconds(process.device_time)},
          {"held_seconds", InSeconds(held)},
          {"waits", WaitsJson(process, waits)}};
}

}  // namespace

std::string ReportText(const JobOutcome& outcome, const ProcessWaits& waits) {
  std::string text = fmt::format("xsched: {}: ran for {}, {}\n", fmt::join(outcome.program, " "),
                                 TimeText(outcome.length), StatusText(outcome.status));
  text += MissingText(outcome, waits);
  const std::vector<const Process*> processes = ProcessesOf(outcome, waits);
  if (processes.empty()) {
    return text +
           "  No queue of it was recorded: it gave no device anything to do, or not through XSched (xsched "
           "doctor says why).\n";
  }
  if (processes.size() > 1) {
    text += fmt::format("All {} processes together\n", processes.size());
    text += Findings(waits, Sum(outcome, processes));
  }
  for (size_t i = 0; i < std::min(processes.size(), kMentioned); ++i)
    text += Explanation(waits, *processes[i]);
  if (processes.size() > kMentioned) text += fmt::format("and {} more.\n", processes.size() - kMentioned);
  return text;
}

Json ReportJson(const JobOutcome& outcome, const ProcessWaits& waits) {
  const std::vector<const Process*> processes = ProcessesOf(outcome, waits);
  Json all = {{"program", outcome.program}, {"seconds", InSeconds(outcome.length)}};
  if (outcome.status >= 0) {
    all["exit_status"] = outcome.status;
  } else {
    all["signal"] = -outcome.status;
  }
  all["missing_seconds"] = InSeconds(outcome.missing);
  all["problem"] = outcome.problem;
  all["lost_records"] = waits.lost();
  all["job_is_older"] = outcome.job_is_older;
  all["total"] = FindingsJson(Sum(outcome, processes), waits);
  all["processes"] = Json::array();
  for (const Process* process : processes) {
    Json one = {{"pid", process->pid},
                {"name", process->name},
                {"user", process->user},
                {"priority", process->priority}};
    one.update(FindingsJson(*process, waits));
    all["processes"].push_back(std::move(one));
  }
  return all;
}

}  // namespace xsched::cli
