#include "sched/sim/history.h"

#include <array>
#include <sstream>

namespace xsched::sched::sim {
namespace {

std::string ToString(Duration duration) {
  if (duration == kAlways) return "kAlways";
  if (duration % milliseconds(1) == Duration::zero())
    return "milliseconds(" + std::to_string(duration / milliseconds(1)) + ")";
  return "microseconds(" + std::to_string(duration / microseconds(1)) + ")";
}

std::string ToString(XPolicyType policy) {
  if (FindPolicy(policy) == nullptr) return "static_cast<XPolicyType>(" + std::to_string(policy) + ")";
  return std::string("FindPolicyByName(\"") + PolicyName(policy) + "\")->type()";
}

// Writes `{.name = value, …}`, without the fields that have their default value.
class Fields {
 public:
  explicit Fields(std::ostream& out) : out_(out) { out_ << "{"; }
  ~Fields() { out_ << "}"; }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  template <typename T>
  void Add(const char* name, T value, T usual) {
    if (value == usual) return;
    out_ << (first_ ? "." : ", .") << name << " = ";
    if constexpr (std::is_same_v<T, Duration> || std::is_same_v<T, XPolicyType>) {
      out_ << ToString(value);
    } else {
      out_ << value;
    }
    first_ = false;
  }
  template <typename T, size_t n>
  void AddName(const char* name, T value, T usual, const std::array<const char*, n>& names) {
    Add(name, names.at(static_cast<size_t>(value)), names.at(static_cast<size_t>(usual)));
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

void Write(std::ostream& out, const ProcessScript& process) {
  const ProcessScript usual;
  Fields fields(out);
  fields.Add("level", process.level, usual.level);
  fields.Add("overrun", process.overrun, usual.overrun);
  fields.Add("reaction", process.reaction, usual.reaction);
  fields.Add("call", process.call, usual.call);
  fields.Add("faults_from", process.faults_from, usual.faults_from);
  fields.Add("faults", process.faults, usual.faults);
  fields.AddName("fault", process.fault, usual.fault, std::array{"Fault::kRefused", "Fault::kTimedOut"});
  fields.Add("job", process.job, usual.job);
  fields.Add("tenant", process.tenant, usual.tenant);
}

void Write(std::ostream& out, const QueueScript& queue) {
  const QueueScript usual;
  Fields fields(out);
  fields.Add("process", queue.process, -1);
  fields.Add("device", queue.device, usual.device);
  fields.Add("priority", queue.priority, usual.priority);
  fields.Add("utilization", queue.utilization, usual.utilization);
  fields.Add("weight", queue.weight, usual.weight);
  fields.Add("guarantee_us", queue.guarantee_us, usual.guarantee_us);
  fields.Add("limit_us", queue.limit_us, usual.limit_us);
  fields.Add("burst_us", queue.burst_us, usual.burst_us);
  fields.Add("latency_target_us", queue.latency_target_us, usual.latency_target_us);
  fields.AddName("style", queue.style, usual.style,
                 std::array{"Style::kWaits", "Style::kPeriodic", "Style::kLaunchesAhead"});
  fields.Add("command", queue.command, usual.command);
  fields.Add("commands", queue.commands, usual.commands);
  fields.Add("room", queue.room, usual.room);
  fields.Add("pause", queue.pause, usual.pause);
  fields.Add("start", queue.start, usual.start);
  fields.Add("end", queue.end, usual.end);
  fields.Add("long_task", queue.long_task, usual.long_task);
  fields.Add("long_command", queue.long_command, usual.long_command);
  fields.AddName("wait", queue.wait, usual.wait,
                 std::array{"Wait::kNone", "Wait::kKnown", "Wait::kHidden", "Wait::kGang"});
  fields.Add("target", queue.target, usual.target);
  fields.Add("every", queue.every, usual.every);
}

void Write(std::ostream& out, const Event& event) {
  const Event usual;
  Fields fields(out);
  fields.Add("at", event.at, usual.at);
  fields.AddName("kind", event.kind, usual.kind,
                 std::array{"EventKind::kKill", "EventKind::kStop", "EventKind::kSuspend",
                            "EventKind::kHints", "EventKind::kPolicy"});
  fields.Add("subject", event.subject, usual.subject);
  fields.Add("length", event.length, usual.length);
  fields.Add("notice", event.notice, usual.notice);
  fields.Add("priority", event.priority, usual.priority);
  fields.Add("utilization", event.utilization, usual.utilization);
  fields.Add("policy", event.policy, usual.policy);
}

template <typename T>
void WriteList(std::ostream& out, const char* name, const std::vector<T>& list) {
  if (list.empty()) return;
  out << "    ." << name << " = {";
  for (const T& item : list) {
    out << "\n        ";
    Write(out, item);
    out << ",";
  }
  out << "},\n";
}

}  // namespace

std::string ToString(const History& history) {
  std::ostringstream out;
  out << "History{\n    .policy = " << ToString(history.policy) << ",\n";
  WriteList(out, "processes", history.processes);
  WriteList(out, "queues", history.queues);
  WriteList(out, "events", history.events);
  out << "    .length = " << ToString(history.length) << ",\n    .timeslice = " << ToString(history.timeslice)
      << ",\n    .survivor = " << history.survivor
      << ",\n    .survivor_works = " << (history.survivor_works ? "true" : "false") << "}";
  return out.str();
}

}  // namespace xsched::sched::sim
