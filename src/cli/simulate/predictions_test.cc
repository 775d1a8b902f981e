// Predictions against measurements: the table of docs/simulator.md. One device model for all cases of a
// device. What was measured is from docs/benchmarks/h200.md and README.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/simulate/load_file.h"
#include "cli/simulate/outcome.h"

namespace xsched::cli {
namespace {

constexpr double kLatencyWithin = 0.15;
constexpr double kThroughputWithin = 0.05;
constexpr Duration kLength = std::chrono::seconds(21);
constexpr Duration kWarmUp = std::chrono::seconds(1);

struct Measured {
  double p50_ms;
  double p99_ms;
  double kept;  // of the time that the task leaves free, the others' throughput; 0: not measured
};

enum class Where { kProcesses, kOneContext, kOneProcess };

// A task at a fixed rate, and programs that always have work.
struct Case {
  const char* name;
  const char* platform;
  Where where;
  double command_ms;
  int commands;
  double rate_hz;
  double other_ms;  // length of the others' commands
  int others;
  Measured native;
  Measured scheduled;
};

constexpr const char* kGpu = "CUDA";
constexpr const char* kCpu = "OpenCL";

const Case kCases[] = {
    {"5 × 200 µs at 50 Hz beside 20 µs",
     kGpu,
     Where::kProcesses,
     0.2,
     5,
     50,
     0.02,
     1,
     {2.246, 3.283, 0.982},
     {1.222, 1.259, 0.971}},
    {"5 × 200 µs at 50 Hz beside 200 µs",
     kGpu,
     Where::kProcesses,
     0.2,
     5,
     50,
     0.2,
     1,
     {2.293, 3.283, 0.982},
     {1.223, 1.260, 0.976}},
    {"5 × 200 µs at 50 Hz beside 1 ms",
     kGpu,
     Where::kProcesses,
     0.2,
     5,
     50,
     1,
     1,
     {2.277, 3.303, 0.984},
     {1.219, 1.263, 0.981}},
    {"5 × 200 µs at 50 Hz beside 10 ms",
     kGpu,
     Where::kProcesses,
     0.2,
     5,
     50,
     10,
     1,
     {2.281, 3.308, 0.983},
     {1.222, 1.274, 0.982}},
    {"10 × 1 ms at 20 Hz beside 1 ms",
     kGpu,
     Where::kProcesses,
     1,
     10,
     20,
     1,
     1,
     {21.332, 22.366, 0.949},
     {10.270, 10.334, 0.999}},
    {"ResNet-152 (a graph of 3.79 ms) at 20 Hz beside ResNet-50",
     kGpu,
     Where::kProcesses,
     3.79,
     1,
     20,
     1,
     1,
     {7.503, 8.680, 0.985},
     {4.160, 4.198, 0.985}},
    {"MPS: 5 × 200 µs at 50 Hz beside 20 µs",
     kGpu,
     Where::kOneContext,
     0.2,
     5,
     50,
     0.02,
     1,
     {1.099, 1.130, 1.002},
     {1.071, 1.121, 0.958}},
    {"MPS: 5 × 200 µs at 50 Hz beside 200 µs",
     kGpu,
     Where::kOneContext,
     0.2,
     5,
     50,
     0.2,
     1,
     {1.904, 2.017, 1.004},
     {1.136, 1.246, 0.987}},
    {"two streams: 5 × 200 µs at 50 Hz beside 20 µs",
     kGpu,
     Where::kOneProcess,
     0.2,
     5,
     50,
     0.02,
     1,
     {1.101, 1.126, 1.003},
     {1.083, 1.139, 0.966}},
    {"two streams: 5 × 200 µs at 50 Hz beside 200 µs",
     kGpu,
     Where::kOneProcess,
     0.2,
     5,
     50,
     0.2,
     1,
     {1.903, 2.010, 1.002},
     {1.140, 1.251, 0.985}},
    {"two streams: 5 × 200 µs at 50 Hz beside 1 ms",
     kGpu,
     Where::kOneProcess,
     0.2,
     5,
     50,
     1,
     1,
     {5.401, 5.997, 1.007},
     {1.560, 2.053, 1.000}},
    {"one high, two low: 5 × 200 µs at 50 Hz beside 200 µs",
     kGpu,
     Where::kProcesses,
     0.2,
     5,
     50,
     0.2,
     2,
     {3.532, 5.760, 0.992},
     {1.245, 1.273, 1.054}},
    // Alone, 20 ms of work have a p99 of 25.5 ms there, because the processor's speed varies.
    {"OpenCL: 10 kernels (25.5 ms) at 10 Hz beside 2 ms",
     kCpu,
     Where::kProcesses,
     2.55,
     10,
     10,
     2,
     1,
     {0, 48.6, 0},
     {0, 28.4, 0.95}},
};

int64_t Nanoseconds(double ms) { return std::llround(ms * 1e6); }

// The load without the task, or without the others, is what the measurement has as reference.
std::string LoadOf(const Case& the_case, bool with_task, bool with_others) {
  std::string load = "{\"xsched_record\":1}\n";
  load +=
      fmt::format(R"({{"t":0,"device":{{"id":0,"platform":"{}"{}}}}})", the_case.platform,
                  the_case.where == Where::kOneContext ? R"(,"level":2,"parameters":{"slice_ns":0})" : "");
  const auto add = [&](int id, const char* name, int process, int priority, const std::string& work) {
    if (process == id) load += fmt::format("\n{{\"t\":0,\"process\":{{\"id\":{}}}}}", id);
    load += fmt::format(
        "\n{{\"t\":0,\"queue\":{{\"id\":{0},\"name\":\"{1}\",\"process\":{2},\"device\":0,"
        "\"hints\":{{\"priority\":{3}}}}}}}",
        id, name, process, priority);
    if (!work.empty()) load += fmt::format("\n{{\"t\":0,\"load\":{{\"queue\":{},{}}}}}", id, work);
  };
  const int64_t period = std::llround(1e9 / the_case.rate_hz);
  add(1, "task", 1, 10,
      with_task ? fmt::format(R"("commands":{},"command_ns":{},"period_ns":{},"jitter_ns":{})",
                              the_case.commands, Nanoseconds(the_case.command_ms), period, period / 4)
                : "");
  for (int i = 0; i < the_case.others; ++i) {
    add(2 + i, "others", the_case.where == Where::kOneProcess ? 1 : 2 + i, 0,
        with_others ? fmt::format(R"("command_ns":{})", Nanoseconds(the_case.other_ms)) : "");
  }
  return load + "\n";
}

Outcome PredictText(const std::string& text, const char* policy) {
  std::istringstream input(text);
  LoadReader reader;
  reader.Read(input, "the case");
  return Predict(reader.Finish(kLength, std::nullopt), SchemeByName(policy), kWarmUp);
}

std::string Cell(double predicted, double measured) {
  if (measured == 0) return " |  | ";
  return fmt::format("{:.3f} | {:.3f} | {:+.1f} %", predicted, measured, (predicted / measured - 1) * 100);
}

bool IsNear(double predicted, double measured, double within) {
  return measured == 0 || std::abs(predicted / measured - 1) <= within;
}

void ExpectNear(const std::string& what, const char* column, double predicted, double measured,
                double within) {
  EXPECT_TRUE(IsNear(predicted, measured, within))
      << what << ", " << column << ": predicted " << predicted << ", measured " << measured;
}

const std::string& Document() {
  static const std::string text = [] {
    std::ifstream file(SIMULATOR_DOCUMENT);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

void ExpectRow(const std::string& row) {
  EXPECT_NE(Document().find(row + "\n"), std::string::npos) << "docs/simulator.md has not the line\n" << row;
}

TEST(Predictions, latencies_and_throughput_are_near_what_was_measured) {
  for (const Case& the_case : kCases) {
    const double alone_ms = PredictText(LoadOf(the_case, true, false), "native").Find("task")->p50_ms;
    const double before = PredictText(LoadOf(the_case, false, true), "native").Find("others")->share;
    const double left = before * (1 - the_case.rate_hz * alone_ms / 1000);
    for (const bool scheduled : {false, true}) {
      const Measured& measured = scheduled ? the_case.scheduled : the_case.native;
      const char* policy = scheduled ? "HPF" : "native";
      const Outcome outcome = PredictText(LoadOf(the_case, true, true), policy);
      const QueueOutcome& task = *outcome.Find("task");
      const double kept = outcome.Find("others")->share / left;
      const std::string what = fmt::format("{}, {}", the_case.name, policy);
      ExpectNear(what, "p50", task.p50_ms, measured.p50_ms, kLatencyWithin);
      ExpectNear(what, "p99", task.p99_ms, measured.p99_ms, kLatencyWithin);
      ExpectNear(what, "kept", kept, measured.kept, kThroughputWithin);
      ExpectRow(fmt::format("| {} | {} | {} | {} | {} |", the_case.name, policy,
                            Cell(task.p50_ms, measured.p50_ms), Cell(task.p99_ms, measured.p99_ms),
                            Cell(kept, measured.kept)));
    }
  }
}

// Two programs that always have work, with shares of 75 and 25.
TEST(Predictions, shares_are_near_what_was_measured) {
  struct Shares {
    double kernel_us;
    double percent;
    double total;  // : native
  };
  for (const Shares& measured : {Shares{20, 75.303, 1.039}, {200, 75.324, 1.032}, {1000, 75.323, 1.033}}) {
    std::string load = "{\"xsched_record\":1}\n{\"t\":0,\"device\":{\"id\":0,\"platform\":\"CUDA\"}}\n";
    for (const auto& [id, share] : {std::pair(1, 75), {2, 25}}) {
      load += fmt::format(
          "{{\"t\":0,\"process\":{{\"id\":{0},\"name\":\"p{0}\"}}}}\n{{\"t\":0,\"queue\":{{\"id\":{0},"
          "\"process\":{0},"
          "\"device\":0,\"hints\":{{\"utilization\":{1}}}}}}}\n{{\"t\":0,\"load\":{{\"queue\":{0},"
          "\"command_ns\":{2}}}}}\n",
          id, share, Nanoseconds(measured.kernel_us / 1000));
    }
    const Outcome native = PredictText(load, "native");
    const Outcome shared = PredictText(load, "UP");
    const auto total = [](const Outcome& outcome) {
      return outcome.queues[0].share + outcome.queues[1].share;
    };
    const double percent = shared.queues[0].share / total(shared) * 100;
    const std::string what = fmt::format("shares 75 : 25, kernels of {} µs", measured.kernel_us);
    ExpectNear(what, "percent", percent, measured.percent, kThroughputWithin);
    ExpectNear(what, "total", total(shared) / total(native), measured.total, kThroughputWithin);
    ExpectRow(fmt::format("| {} | {} | {} |", what, Cell(percent, measured.percent),
                          Cell(total(shared) / total(native), measured.total)));
  }
}

}  // namespace
}  // namespace xsched::cli
