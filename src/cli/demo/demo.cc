// xsched demo: shows what XSched does. An urgent OpenCL task runs beside an unmodified program that keeps the
// device busy: first natively, then with both under xsched run.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/demo/demo_chart.h"
#include "cli/demo/demo_page.h"
#include "cli/demo/hashcat.h"
#include "cli/exit_codes.h"
#include "cli/locations.h"
#include "cli/output_file.h"
#include "cli/programs/background_program.h"
#include "cli/programs/stop_signals.h"
#include "cli/programs/workplace.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::steady_clock;

// How often a running program is checked: seldom enough not to disturb the measurement.
constexpr std::chrono::milliseconds kPoll{20};
// The most time that hashcat needs to compile and tune its kernels.
constexpr std::chrono::seconds kBusyStart{60};

struct DemoOptions {
  double seconds = 20;
  bool ascii = false;
  bool as_json = false;
  std::string page;  // the file to write; "": none
};

struct Round {
  std::vector<double> latencies_ms;
  double busy_rate = 0;  // candidates per second
};

class Demo {
 public:
  explicit Demo(const DemoOptions& options) : options_(options) {
    if (!FindInPath("hashcat")) {
      throw CommandError(kExitFailed,
                         "the demo's busy program, hashcat, is not installed (apt-get install hashcat)");
    }
    std::optional<std::string> task = FindProgram("xsched-latency-task");
    if (!task) throw CommandError(kExitFailed, "xsched-latency-task is not installed beside this program");
    task_ = *task;
    if (!options_.page.empty()) page_.Reserve(options_.page, /*is_named=*/true, kEverybody);
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
    ToItsEnd({task_, "--calibrate"}, output);
    std::ifstream(output) >> loops_per_ms_;
  }

  // Runs it to its end. Throws unless it succeeds. `meanwhile` is called from time to time.
  void ToItsEnd(
      const std::vector<std::string>& words, const std::string& output,
      const std::function<void()>& meanwhile = [] {}) const {
    BackgroundProgram program(words, output);
    while (!program.Status()) {
      signals_.Sleep(kPoll);
      meanwhile();
    }
    if (program.Status() != 0) Fail(words[0], output);
  }

  [[noreturn]] static void Fail(const std::string& program, const std::string& output) {
    std::string last;
    std::ifstream file(output);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) last = line;
    }
    throw CommandError(kExitFailed,
                       fmt::format("{} failed: {}", fs::path(program).filename().string(), last));
  }

  std::vector<double> Latencies(
      std::vector<std::string> prefix, const std::function<void()>& meanwhile = [] {}) const {
    std::string result = place_.File("latencies.json");
    prefix.insert(prefix.end(),
                  {task_, "--kernels", "10", "--rate", "10", "--seconds", fmt::format("{}", options_.seconds),
                   "--loops-per-ms", loops_per_ms_, "--json", result});
    ToItsEnd(prefix, place_.File("task"), meanwhile);
    std::ifstream file(result);
    return json::parse(file)["latency_ms"].get<std::vector<double>>();
  }

  Round Together(const std::vector<std::string>& task_prefix, std::vector<std::string> busy_prefix) const {
    std::string output = place_.File("busy");
    std::vector<std::string> command = HashcatCommand(place_.path());
    busy_prefix.insert(busy_prefix.end(), command.begin(), command.end());
    BackgroundProgram busy(busy_prefix, output);
    HashcatLog log;
    size_t heard = 0;
    auto listen = [&] {
      // Opened each time: in LLVM's library, a stream that was at the end of its file sees nothing that is
      // added.
      std::ifstream file(output);
      file.seekg(static_cast<std::streamoff>(heard));
      const std::string text(std::istreambuf_iterator<char>(file), {});
      heard += text.size();
      log.Add(text, steady_clock::now());
    };
    for (auto start = steady_clock::now(); log.lines().size() < 2; listen()) {
      if (busy.Status() || steady_clock::now() - start > kBusyStart) Fail("hashcat", output);
      signals_.Sleep(kPoll);
    }
    Round round;
    size_t from = log.lines().size();
    round.latencies_ms = Latencies(task_prefix, listen);
    if (busy.Status()) Fail("hashcat", output);
    round.busy_rate = CandidateRate(std::span(log.lines()).subspan(from));
    return round;
  }

  void Report(const std::vector<double>& alone, const Round& native, const Round& scheduled) {
    const BusyRates busy{native.busy_rate, scheduled.busy_rate};
    const std::vector<LatencySeries> series = {{"alone", alone},
                                               {"beside hashcat, native", native.latencies_ms},
                                               {"beside hashcat, XSched", scheduled.latencies_ms}};
    if (!options_.page.empty()) {
      page_.Begin();
      page_ << DemoPage(series, busy);
      page_.Close();
    }
    if (options_.as_json) {
      json all = {{"alone_ms", alone},
                  {"native_ms", native.latencies_ms},
                  {"xsched_ms", scheduled.latencies_ms},
                  {"busy_native_per_s", native.busy_rate},
                  {"busy_xsched_per_s", scheduled.busy_rate}};
      fmt::print("{}\n", all.dump());
      return;
    }
    fmt::print("\n{}\n{}\n", LatencyTable(series), LatencyChart(series, options_.ascii));
    fmt::print("hashcat: {:.2f} M candidates/s native, {:.2f} under XSched ({:.0f} %)\n",
               native.busy_rate / 1e6, scheduled.busy_rate / 1e6, busy.kept() * 100);
  }

  DemoOptions options_;
  StopSignals signals_;  // must be destroyed after the members that clean up
  Workplace place_{"demo"};
  std::string task_;
  std::string self_;
  std::string loops_per_ms_;
  OutputFile page_;
};

}  // namespace

void AddDemo(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* demo =
      app.add_subcommand("demo", "an urgent OpenCL task beside a busy program, without and with XSched");
  demo->add_option("--seconds", options->seconds, "length of each of the three rounds")
      ->check(Between(3.0, 600.0));
  demo->add_flag("--ascii", options->ascii, "no Unicode in the chart");
  demo->add_flag("--json", options->as_json, "as JSON");
  demo->add_option("--html", options->page, "also a page with plots, in one file")->type_name("FILE");
  demo->callback([options] { Demo(*options).Run(); });
}

}  // namespace xsched::cli
