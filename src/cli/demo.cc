// xsched demo: the main job, seen. An urgent OpenCL task runs beside a program that keeps the device busy and
// knows nothing of XSched, first natively, then with each of them under xsched run.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/demo_chart.h"
#include "cli/exit_codes.h"
#include "cli/locations.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct DemoOptions {
  double seconds = 20;
  bool ascii = false;
  bool as_json = false;
};

// A folder for the demo's files, gone with it.
class Workplace {
 public:
  Workplace() {
    std::string pattern = (fs::temp_directory_path() / "xsched-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw CommandError(kExitFailed, "cannot make a temporary folder");
    folder_ = pattern;
  }
  ~Workplace() {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  std::string File(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

// A program started by the demo, in a process group of its own so that all of it can be ended.
class Program {
 public:
  Program(const std::vector<std::string>& words, const std::string& output) {
    pid_ = fork();
    if (pid_ < 0) throw CommandError(kExitFailed, "cannot start a process");
    if (pid_ == 0) Become(words, output);
  }
  ~Program() { End(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The exit status; -1 when it was ended by a signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void End() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGTERM);
    for (int i = 0; i < 100; ++i) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    kill(-pid_, SIGKILL);
    Wait();
  }

 private:
  [[noreturn]] static void Become(const std::vector<std::string>& words, const std::string& output) {
    setpgid(0, 0);
    int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(file, 1);
    dup2(file, 2);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }

  pid_t pid_ = -1;
};

// The program that keeps the device busy. It reports how fast it is once a second.
class BusyProgram {
 public:
  BusyProgram() {
    if (!FindInPath("hashcat")) {
      throw CommandError(kExitFailed,
                         "the demo's busy program, hashcat, is not installed (apt-get install hashcat)");
    }
  }

  // Searches for a hash that it will not find.
  std::vector<std::string> Command() const {
    return {"hashcat",
            "-a",
            "3",
            "-m",
            "0",
            "--force",
            "-D",
            "1,2",
            "-w",
            "1",
            "--potfile-disable",
            "--restore-disable",
            "--logfile-disable",
            "--self-test-disable",
            "--status",
            "--status-json",
            "--status-timer",
            "1",
            "ffffffffffffffffffffffffffffffff",
            "?a?a?a?a?a?a?a?a"};
  }

  // Candidates tried, and when (seconds since the epoch), by the lines of its status so far.
  static std::vector<std::pair<double, double>> Progress(const std::string& output) {
    std::vector<std::pair<double, double>> progress;
    std::ifstream file(output);
    for (std::string line; std::getline(file, line);) {
      json status = json::parse(line, nullptr, false);
      if (!status.is_object() || !status.contains("progress")) continue;
      // It gives whole seconds only; lines come once a second.
      progress.emplace_back(static_cast<double>(progress.size()), status["progress"][0].get<double>());
    }
    return progress;
  }
};

struct Round {
  std::vector<double> latencies_ms;
  double busy_rate = 0;  // candidates per second
};

class Demo {
 public:
  explicit Demo(const DemoOptions& options) : options_(options) {
    std::optional<std::string> task = FindProgram("xsched-latency-task");
    if (!task) throw CommandError(kExitFailed, "xsched-latency-task is not installed beside this program");
    task_ = *task;
    self_ = fs::read_symlink("/proc/self/exe").string();
  }

  void Run() {
    Say("measuring the device …");
    Calibrate();
    Say(fmt::format("the urgent task alone, {:.0f} s …", options_.seconds));
    std::vector<double> alone = Latencies({});
    Say(fmt::format("beside hashcat, natively, {:.0f} s …", options_.seconds));
    Round native = Together({}, {});
    Say(fmt::format("beside hashcat, under XSched, {:.0f} s …", options_.seconds));
    Round scheduled =
        Together({self_, "run", "--priority", "10", "--"}, {self_, "run", "--priority", "0", "--"});
    Report(alone, native, scheduled);
  }

 private:
  void Say(const std::string& text) const {
    if (!options_.as_json) fmt::print("{}\n", text);
    std::fflush(stdout);
  }

  void Calibrate() {
    std::string output = place_.File("calibrate");
    if (Program({task_, "--calibrate"}, output).Wait() != 0) Fail(output);
    std::ifstream(output) >> loops_per_ms_;
  }

  [[noreturn]] void Fail(const std::string& output) const {
    std::string line;
    std::ifstream file(output);
    std::getline(file, line);
    throw CommandError(kExitFailed, fmt::format("a program of the demo failed: {}", line));
  }

  std::vector<double> Latencies(std::vector<std::string> prefix) const {
    std::string result = place_.File("latencies.json");
    std::string output = place_.File("task");
    prefix.insert(prefix.end(),
                  {task_, "--kernels", "10", "--rate", "10", "--seconds", fmt::format("{}", options_.seconds),
                   "--loops-per-ms", loops_per_ms_, "--json", result});
    if (Program(prefix, output).Wait() != 0) Fail(output);
    std::ifstream file(result);
    return json::parse(file)["latency_ms"].get<std::vector<double>>();
  }

  Round Together(const std::vector<std::string>& task_prefix, std::vector<std::string> busy_prefix) const {
    std::string output = place_.File("busy");
    fs::remove(output);  // of the round before
    std::vector<std::string> command = busy_.Command();
    busy_prefix.insert(busy_prefix.end(), command.begin(), command.end());
    Program busy(busy_prefix, output);
    // It compiles its kernels and tunes itself first.
    for (int i = 0; BusyProgram::Progress(output).size() < 2; ++i) {
      if (i == 600) Fail(output);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    size_t from = BusyProgram::Progress(output).size() - 1;
    Round round;
    round.latencies_ms = Latencies(task_prefix);
    auto progress = BusyProgram::Progress(output);
    if (progress.size() > from + 1) {
      auto [begin, tried_before] = progress[from];
      auto [end, tried] = progress.back();
      round.busy_rate = (tried - tried_before) / (end - begin);
    }
    return round;
  }

  void Report(const std::vector<double>& alone, const Round& native, const Round& scheduled) const {
    double kept = native.busy_rate > 0 ? scheduled.busy_rate / native.busy_rate : 0;
    if (options_.as_json) {
      json all = {{"alone_ms", alone},
                  {"native_ms", native.latencies_ms},
                  {"xsched_ms", scheduled.latencies_ms},
                  {"busy_native_per_s", native.busy_rate},
                  {"busy_xsched_per_s", scheduled.busy_rate}};
      fmt::print("{}\n", all.dump());
      return;
    }
    std::vector<LatencySeries> series = {{"alone", alone},
                                         {"beside hashcat, native", native.latencies_ms},
                                         {"beside hashcat, XSched", scheduled.latencies_ms}};
    fmt::print("\n{}\n{}\n", LatencyTable(series), LatencyChart(series, options_.ascii));
    fmt::print("hashcat: {:.2f} M candidates/s native, {:.2f} under XSched ({:.0f} %)\n",
               native.busy_rate / 1e6, scheduled.busy_rate / 1e6, kept * 100);
  }

  DemoOptions options_;
  Workplace place_;
  BusyProgram busy_;
  std::string task_;
  std::string self_;
  std::string loops_per_ms_;
};

}  // namespace

void AddDemo(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* demo =
      app.add_subcommand("demo", "an urgent OpenCL task beside a busy program, without and with XSched");
  demo->add_option("--seconds", options->seconds, "length of each of the three rounds")
      ->check(CLI::Range(2.0, 600.0));
  demo->add_flag("--ascii", options->ascii, "no Unicode in the chart");
  demo->add_flag("--json", options->as_json, "as JSON");
  demo->callback([options] { Demo(*options).Run(); });
}

}  // namespace xsched::cli
