#include "cli/calibrate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/calibrate/fit.h"
#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kTaskCommand = microseconds(200);
constexpr int kFew = 9;
constexpr int kMany = 200;
constexpr Duration kShortest = microseconds(10);
constexpr double kLaunchesPerShort = 4;
constexpr int kCommandsToHold = 256;  // so many that the task lasts until every other queue stands
constexpr Duration kPause = milliseconds(3);
constexpr Duration kShortPause = microseconds(100);

constexpr const char* kTooFewTasks = "too few tasks ended: measure for longer (--seconds)";
// What is left out if no hold is seen.
constexpr const char* kOfHolds[] = {"preempt_latency_ns", "hold_latency_ns", "resume_latency_ns", "gate_ns",
                                    "in_flight"};

Duration Time(double nanoseconds) { return Duration(std::llround(nanoseconds)); }

QueueWork Always(Duration command) { return {.command = command}; }
QueueWork Tasks(int commands, Duration command) {
  return {.command = command, .commands = commands, .pause = kPause};
}

class Measurement {
 public:
  Measurement(Machine& machine, Duration length) : machine_(machine), length_(length) {}

  Calibration Run() {
    MeasureTasks();
    ChooseCommands();
    MeasureSlices();
    MeasureHolds();
    return std::move(result_);
  }

 private:
  // A length that was asked for, and the one that the device gives it.
  struct Command {
    Duration nominal{};
    double length = 0;
  };

  void Add(const char* name, const Estimate& estimate, std::string how) {
    result_.parameters.push_back({name, estimate.value, estimate.spread, std::move(how)});
  }
  void LeaveOut(const char* name, std::string why) {
    result_.parameters.push_back({name, std::nullopt, 0, std::move(why)});
  }

  std::vector<std::vector<Span>> Natively(std::vector<std::vector<QueueWork>> programs) {
    return machine_.Run({.scheduled = false, .programs = std::move(programs), .length = length_}).spans;
  }

  // Two queues of one program: time slices play no part in it.
  std::vector<std::vector<Span>> Scheduled(const QueueWork& urgent, const QueueWork& other) {
    QueueWork first = urgent;
    first.priority = 1;
    Observation seen = machine_.Run({.scheduled = true, .programs = {{first, other}}, .length = length_});
    result_.level = seen.level;
    return std::move(seen.spans);
  }

  void MeasureTasks() {
    const std::optional<Estimate> one = Latency(Natively({{Tasks(1, kTaskCommand)}})[0]);
    const std::optional<Estimate> few = Latency(Natively({{Tasks(kFew, kTaskCommand)}})[0]);
    const std::optional<Estimate> many = Latency(Natively({{Tasks(kMany, Duration::zero())}})[0]);
    if (one && few) {
      const double command = (few->value - one->value) / (kFew - 1);
      command_latency_ = std::max(0.0, one->value - command);
      Add("command_latency_ns", {command_latency_, one->spread},
          fmt::format("a task of one command, without the command, which is what each of {} more adds",
                      kFew - 1));
    } else {
      LeaveOut("command_latency_ns", kTooFewTasks);
    }
    if (many) {
      launch_ = std::max(0.0, (many->value - command_latency_) / kMany);
      Add("launch_ns", {launch_, many->spread / kMany},
          fmt::format("a task of {} of the shortest commands, divided by their number", kMany));
    } else {
      LeaveOut("launch_ns", kTooFewTasks);
    }
  }

  // Short ones are still longer than their launch.
  void ChooseCommands() {
    const Duration shortest = std::max(kShortest, Time(kLaunchesPerShort * launch_));
    for (auto& [command, times] : {std::pair(&short_, 1), {&middle_, 5}, {&long_, 10}}) {
      command->nominal = shortest * times;
      command->length = CommandLength(Natively({{Always(command->nominal)}})[0]).value;
      if (command->length <= 0)
        throw CommandError(kExitFailed, "too few commands ended: measure for longer (--seconds)");
    }
  }

  void MeasureSlices() {
    const auto both = Natively({{Always(middle_.nominal)}, {Always(middle_.nominal)}});
    const std::optional<Slices> slices = FitSlices(both[0], both[1], middle_.length);
    if (!slices) {
      Add("slice_ns", {0, 0}, "two programs beside each other: neither is without progress for long");
      LeaveOut("switch_ns", "the device has no slices");
      LeaveOut("switch_idle_ns", "the device has no slices");
      return;
    }
    Add("slice_ns", slices->slice, "two programs beside each other: how long one has progress");
    Add("switch_ns", slices->change, "the same: half of the rest of the time from one slice to its next");
    QueueWork task = {.command = middle_.nominal, .pause = kShortPause, .spread = kShortPause};
    const auto beside = Natively({{task}, {Always(middle_.nominal)}});
    Add("switch_idle_ns", FitChangeWhenIdle(beside[0], beside[1], middle_.length, slices->change.value),
        "short tasks beside a program: what it loses for each, without the task and switch_ns");
  }

  void MeasureHolds() {
    const std::vector<Hold> long_holds = HoldsBeside(long_);
    const std::vector<Hold> short_holds = result_.level > 1 ? long_holds : HoldsBeside(short_);
    if (long_holds.empty() || short_holds.empty()) {
      for (const char* name : kOfHolds) LeaveOut(name, kTooFewTasks);
    } else if (result_.level > 1) {
      MeasureGates();
      // The last command may give way to one of the task.
      MeasureHoldLatency(long_holds, -launch_);
    } else {
      const double run_on = std::max(1.0, std::round(CommandsAfterHold(long_holds)));
      const double hold = MeasureHoldLatency(long_holds, (run_on - 1) * (long_.length + launch_));
      CountInFlight(short_holds, run_on, hold);
    }
    LeaveOut("sliced_preempt_latency_ns", "no figure of a program shows it by itself");
    for (const char* call : {"slice_change_ns", "off_ns", "on_ns"})
      LeaveOut(call,
               result_.level < 3 ? "the level has no slices" : "programs do not see the driver's calls");
  }

  // What an urgent task saw of a queue with these commands.
  std::vector<Hold> HoldsBeside(const Command& command) {
    const QueueWork urgent = {.command = {}, .commands = kCommandsToHold, .pause = kPause, .spread = kPause};
    const auto spans = Scheduled(urgent, Always(command.nominal));
    return HoldsOf(spans[0], spans[1]);
  }

  // By how much these commands take longer if they have gates.
  Estimate LongerWithGates(const Command& command) {
    const Estimate gated = CommandLength(Scheduled({.commands = 0}, Always(command.nominal))[1]);
    return {std::max(0.0, gated.value - command.length), gated.spread};
  }

  // Gates on the device, between commands.
  void MeasureGates() {
    const Estimate gate = LongerWithGates(long_);
    const Estimate part = LongerWithGates(short_);
    Add("gate_ns", gate,
        "long commands beside an urgent queue without work: what they take longer, with a gate before each");
    gate_of_long_ = gate.value;
    if (part.value > 0 && gate.value > gate.spread) {
      // A number of commands, and a part of one that is not seen: on average a half.
      const double between = std::max(1.0, std::round(gate.value / part.value));
      Add("preempt_latency_ns", {(between + 0.5) * short_.length, short_.length / 2},
          "short commands beside the same: what they take longer is a part of a gate, one for so many of "
          "them");
    } else {
      LeaveOut("preempt_latency_ns", "gates are too short to be seen on this machine");
    }
    LeaveOut("in_flight", "the level has gates on the device");
  }

  // `after`: by how much the earliest stop of long commands is later than the hold. Returns the latency; 0:
  // it is too short to be seen.
  double MeasureHoldLatency(const std::vector<Hold>& holds, double after) {
    const Estimate resumed = Resumed(holds);
    Add("resume_latency_ns", {std::max(0.0, resumed.value - long_.length - gate_of_long_), resumed.spread},
        "from an urgent task's end until a long command of the held queue ends, without the command");
    const Estimate stop = EarliestStop(holds);
    const double hold = stop.value - after - command_latency_;
    if (hold < stop.spread) {
      LeaveOut("hold_latency_ns",
               fmt::format("it is shorter than what can be seen on this machine, {:.1f} µs",
                           (std::max(0.0, hold) + stop.spread) / 1e3));
      return 0;
    }
    Add("hold_latency_ns", {hold, stop.spread},
        "an urgent task beside long commands: the earliest end of one that was the last");
    return hold;
  }

  // The host bounds what is in flight, by time or by number. `long_ones`: so many long commands run on.
  void CountInFlight(const std::vector<Hold>& short_holds, double long_ones, double hold) {
    // Also counted are those whose end was seen late, and those until the hold.
    const double before_hold = command_latency_ / short_.length + hold / (short_.length + launch_);
    const double short_ones = std::max(1.0, std::round(CommandsAfterHold(short_holds) - before_hold));
    // By time, as many short ones as take the time of the long ones run on, but for a part of a command.
    if ((short_ones + 2) * short_.length < long_ones * long_.length) {
      Add("in_flight", {short_ones, 0}, "an urgent task beside short commands: how many of them run on");
      Add("preempt_latency_ns", {long_ones * long_.length, long_.length},
          "an urgent task beside long commands: how many of them run on, as time");
    } else {
      LeaveOut("in_flight", "time bounds what runs on, and not its number");
      Add("preempt_latency_ns", {short_ones * short_.length, short_.length},
          "an urgent task beside short commands: how many of them run on, as time");
    }
    LeaveOut("gate_ns", "the host opens the gates, and these commands do not run one by one");
  }

  Machine& machine_;
  Duration length_;
  Calibration result_;
  Command short_, middle_, long_;
  double command_latency_ = 0;
  double launch_ = 0;
  double gate_of_long_ = 0;  // the part of a gate that belongs to a long command
};

}  // namespace

Calibration Calibrate(Machine& machine, Duration length) { return Measurement(machine, length).Run(); }

}  // namespace xsched::cli
