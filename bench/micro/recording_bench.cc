// Measures what xsched record costs a program: the same program over the software device, recorded and not
// recorded in turns, beside a real server and a real recorder.
//
//   recording_bench [--json] [--rounds N] [--seconds S]
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"
#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace {

using namespace xsched;
using nlohmann::json;
using server::testing::ServerProcess;
using server::testing::TempFolder;

// What the program does until it is told to stop.
struct Style {
  const char* name;
  int commands;    // of a task
  int64_t length;  // of each, in microseconds
};
constexpr Style kStyles[] = {{"tasks of 20 x 500 us", 20, 500},
                             {"tasks of 10 x 100 us", 10, 100},
                             {"tasks of 1 x 1000 us", 1, 1000},
                             {"tasks of 1 x 100 us", 1, 100}};

struct Setup {
  int rounds = 10;
  double seconds = 1;
};

// Of one measurement.
struct Figures {
  double rate;       // tasks per second
  double cpu_us;     // processor time of this program per task, in all of its threads
  double thread_us;  // the same of the thread that launches and waits
};

// `whose`: as in getrusage.
double CpuSeconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A queue of this program.
class Program {
 public:
  Program() {
    if (SoftQueueCreate(&hwq_, 1, kPreemptLevelBlock) != kXSchedSuccess ||
        XQueueCreate(&xqueue_, hwq_, kPreemptLevelBlock, kQueueCreateFlagNone) != kXSchedSuccess)
      throw std::runtime_error("no queue");
  }
  ~Program() {
    XQueueDestroy(xqueue_);
    HwQueueDestroy(hwq_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Tasks are launched at once, and waited for.
  Figures Work(const Style& style, double seconds) const {
    const TimePoint begin = MonotonicClock::now();
    const double cpu = CpuSeconds(RUSAGE_SELF);
    const double thread = CpuSeconds(RUSAGE_THREAD);
    int tasks = 0;
    for (; InSeconds(MonotonicClock::now() - begin) < seconds; ++tasks) {
      for (int i = 0; i < style.commands; ++i) SoftLaunch(hwq_, style.length, nullptr, nullptr);
      SoftSynchronize(hwq_);
    }
    return {tasks / InSeconds(MonotonicClock::now() - begin), (CpuSeconds(RUSAGE_SELF) - cpu) / tasks * 1e6,
            (CpuSeconds(RUSAGE_THREAD) - thread) / tasks * 1e6};
  }

 private:
  HwQueueHandle hwq_ = 0;
  XQueueHandle xqueue_ = 0;
};

// xsched record, from when it records until it is destroyed.
class Recorder {
 public:
  explicit Recorder(const TempFolder& folder) : path_(folder.path() + "/recording.xrec") {
    unlink(path_.c_str());
    pid_ = fork();
    if (pid_ == 0) {
      if (freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
      execl(XSCHED_PROGRAM, "xsched", "record", "--output", path_.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    const auto records = [&] { return Content().find("\"queue\"") != std::string::npos; };
    if (!server::testing::Eventually(records, std::chrono::seconds(10)))
      throw std::runtime_error("it does not record");
  }
  ~Recorder() {
    kill(pid_, SIGINT);
    waitpid(pid_, nullptr, 0);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  std::string Content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path_;
  pid_t pid_ = -1;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Neighbors are compared, because a machine may become slower meanwhile.
json Measure(const Style& style, const Setup& setup, const TempFolder& folder) {
  const Program program;
  std::vector<double> without;
  std::vector<double> with;
  std::vector<double> costs;
  // Of processor time, the least is what a busy machine has added the least to.
  Figures least{0, 1e9, 1e9};
  Figures least_recorded = least;
  Figures before = program.Work(style, setup.seconds);
  for (int i = 0; i < setup.rounds; ++i) {
    const auto recorded = [&] {
      const Recorder recorder(folder);
      return program.Work(style, setup.seconds);
    }();
    const Figures after = program.Work(style, setup.seconds);
    without.push_back(after.rate);
    with.push_back(recorded.rate);
    costs.push_back(100 * (1 - recorded.rate / ((before.rate + after.rate) / 2)));
    least.cpu_us = std::min(least.cpu_us, after.cpu_us);
    least.thread_us = std::min(least.thread_us, after.thread_us);
    least_recorded.cpu_us = std::min(least_recorded.cpu_us, recorded.cpu_us);
    least_recorded.thread_us = std::min(least_recorded.thread_us, recorded.thread_us);
    before = after;
  }
  const double task_us = static_cast<double>(style.commands) * static_cast<double>(style.length);
  return {{"program", style.name},
          {"tasks_per_s", Median(without)},
          {"tasks_per_s_recorded", Median(with)},
          {"cost_percent", Median(costs)},
          {"cost_percent_min", *std::min_element(costs.begin(), costs.end())},
          {"cost_percent_max", *std::max_element(costs.begin(), costs.end())},
          {"cpu_us_per_task", least_recorded.cpu_us - least.cpu_us},
          {"thread_us_per_task", least_recorded.thread_us - least.thread_us},
          {"thread_percent", 100 * (least_recorded.thread_us - least.thread_us) / task_us}};
}

}  // namespace

int main(int argc, char** argv) {
  Setup setup;
  bool as_json = false;
  CLI::App app("What xsched record costs a program");
  app.add_flag("--json", as_json, "print JSON instead of a table");
  app.add_option("--rounds", setup.rounds, "how often each is measured")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", setup.seconds, "of each measurement")->check(CLI::Range(0.1, 60.0));
  CLI11_PARSE(app, argc, argv);

  const TempFolder folder;
  const ServerProcess server(XSERVER_PROGRAM, folder.path() + "/xserver.sock", {"--user", "--policy", "HPF"});
  if (!server.ready()) {
    fmt::print(stderr, "{}", server.errors());
    return 1;
  }
  setenv("XSCHED_SOCKET", server.socket().text, 1);
  setenv("XSCHED_SCHEDULER", "GLB", 1);
  json all = json::array();
  for (const Style& style : kStyles) all.push_back(Measure(style, setup, folder));
  if (as_json) {
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  // COST: of tasks per second. Per task, CPU: processor time of the program; THREAD: of the thread that
  // launches and waits, also as a share of the task's length.
  fmt::print("{:<22} {:>10} {:>10} {:>8} {:>18} {:>8} {:>10} {:>9}\n", "PROGRAM", "TASKS/s", "RECORDED",
             "COST %", "FROM .. TO", "CPU us", "THREAD us", "THREAD %");
  for (const json& row : all) {
    const auto value = [&](const char* name) { return row[name].get<double>(); };
    fmt::print("{:<22} {:>10.1f} {:>10.1f} {:>8.2f} {:>8.2f} .. {:>6.2f} {:>8.1f} {:>10.1f} {:>9.2f}\n",
               row["program"].get<std::string>(), value("tasks_per_s"), value("tasks_per_s_recorded"),
               value("cost_percent"), value("cost_percent_min"), value("cost_percent_max"),
               value("cpu_us_per_task"), value("thread_us_per_task"), value("thread_percent"));
  }
  return 0;
}
