// What xserver costs with many devices, programs and queues, and how soon it holds the queues that a request
// displaces. A real xserver runs on one core, and simulated programs (programs.h) on another one.
//
//   scale_bench                                                        # 8 devices, 500 programs of 20 queues
//   scale_bench --devices 1,2,4,8 --programs 20,100,500 [--json]       # every combination
#include <errno.h>
#include <fmt/format.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "measuring.h"
#include "programs.h"
#include "server/testing/server_process.h"

namespace {

using namespace xsched;
using namespace xsched::bench;
using nlohmann::json;
using server::testing::ServerProcess;
using server::testing::TempFolder;
using server::testing::TestTool;

constexpr int kGoalP99Us = 200;
constexpr int kWakeups = 2000;  // for comparison

struct Setup {
  Crowd crowd;
  double seconds = 10;
  std::string policy = "HPF";
  std::string xserver = XSERVER_PROGRAM;
  bool fifo = false;
};

// A program takes three descriptors here.
void RaiseDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// All users may claim a priority, as where a site gives its own services the right to.
std::vector<std::string> ArgumentsOf(const Setup& setup, const TempFolder& folder) {
  if (setup.crowd.users == 1) return {"--user", "--policy", setup.policy};
  const std::string tenants = folder.path() + "/tenants.toml";
  std::ofstream(tenants) << "[default]\nmax_priority = 10\nqueues = 8192\n";
  return {"--system", "--policy", setup.policy, "--tenants", tenants};
}

void ExpectAllScheduled(const ServerProcess& server, const Crowd& crowd) {
  const auto wanted = static_cast<size_t>(crowd.programs) * static_cast<size_t>(crowd.queues);
  TestTool tool(server.socket());
  const auto queues = tool.List();
  if (!queues || queues->size() == wanted) return;
  throw std::runtime_error(fmt::format(
      "{} of {} queues are scheduled: a user may have 8192. As root, --users N spreads them over N users\n{}",
      queues->size(), wanted, server.errors()));
}

// Nothing else on its core can then delay it, as if the core were the server's alone.
void PutFirst(pid_t server) {
  sched_param first{.sched_priority = 1};
  if (sched_setscheduler(server, SCHED_FIFO, &first) != 0)
    throw std::runtime_error(fmt::format("--fifo: {}", strerror(errno)));
}

json Measure(const Setup& setup) {
  const Crowd& crowd = setup.crowd;
  TempFolder folder;
  ServerProcess server(setup.xserver, folder.path() + "/xserver.sock", ArgumentsOf(setup, folder));
  if (!server.ready()) throw std::runtime_error(server.errors());
  Pin(server.pid(), kServerCore);
  if (setup.fifo) PutFirst(server.pid());
  const double cpu_at_start = server.cpu_seconds();
  Programs programs(server.socket(), crowd);
  ExpectAllScheduled(server, crowd);
  const double cpu_to_connect = server.cpu_seconds() - cpu_at_start;

  constexpr auto kWarmUp = std::chrono::seconds(1);
  const Duration time(static_cast<int64_t>(setup.seconds * 1e9));
  programs.Start();
  programs.Run(kWarmUp);
  const double cpu_before = server.cpu_seconds();
  CrowdFigures figures = programs.Run(time);
  const double cpu = server.cpu_seconds() - cpu_before;
  const long resident_kb = server.resident_kb();

  programs.Finish();
  usleep(1'500'000);  // the server watches processes for a while after the last turn
  const double idle_before = server.cpu_seconds();
  usleep(1'000'000);
  const double idle = server.cpu_seconds() - idle_before;
  if (figures.close_us.empty()) throw std::runtime_error("no request displaced a queue");
  return {{"devices", crowd.devices},
          {"programs", crowd.programs},
          {"queues", crowd.programs * crowd.queues},
          {"requests", figures.close_us.size()},
          {"displaced", Quantiles(figures.displaced)},
          {"ready_to_first_hold_us", Quantiles(figures.first_close_us)},
          {"ready_to_last_hold_us", Quantiles(figures.close_us)},
          {"never_held", figures.never},
          {"not_seen", figures.unseen},
          {"server",
           {{"cpu_percent", cpu / setup.seconds * 100},
            {"cpu_idle_percent", idle * 100},
            {"cpu_ms_to_connect", cpu_to_connect * 1e3},
            {"resident_mib", static_cast<double>(resident_kb) / 1024}}}};
}

void PrintHeading() {
  fmt::print(
      "From a request until the gates of all queues that it displaces are closed, in µs (goal: p99 <= {}):\n",
      kGoalP99Us);
  fmt::print("{:>7} {:>8} {:>6} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>6} {:>6} {:>6}\n", "devices",
             "programs", "queues", "displaced", "p50", "p90", "p99", "p99.9", "max", "not seen", "CPU %",
             "idle %", "MiB");
}

void PrintRow(const json& row) {
  const json& last = row["ready_to_last_hold_us"];
  const json& server = row["server"];
  fmt::print("{:>7} {:>8} {:>6} {:>9.0f}", row["devices"].get<int>(), row["programs"].get<int>(),
             row["queues"].get<int>(), row["displaced"]["p50"].get<double>());
  for (const char* quantile : {"p50", "p90", "p99", "p999", "max"})
    fmt::print(" {:>7.1f}", last[quantile].get<double>());
  fmt::print(" {:>9}", fmt::format("{}/{}", row["not_seen"].get<int>(), row["requests"].get<size_t>()));
  for (const char* figure : {"cpu_percent", "cpu_idle_percent", "resident_mib"})
    fmt::print(" {:>6.1f}", server[figure].get<double>());
  fmt::print("\n");
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Setup setup;
  std::vector<int> devices = {8};
  std::vector<int> programs = {500};
  bool as_json = false;
  setup.crowd.users = geteuid() == 0 ? 10 : 1;
  CLI::App app("xserver with many devices, programs and queues");
  app.add_option("--devices", devices, "devices, or several numbers of them")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  app.add_option("--programs", programs, "programs, or several numbers of them")
      ->delimiter(',')
      ->check(CLI::Range(2, 4000));
  app.add_option("--queues", setup.crowd.queues, "queues of each program")->check(CLI::Range(1, 1024));
  app.add_option("--users", setup.crowd.users, "users whose programs they are; as root")
      ->check(CLI::Range(1, 1000));
  app.add_option("--busy", setup.crowd.busy, "queues of a batch job that always have work")
      ->check(CLI::Range(1, 1024));
  app.add_option("--level", setup.crowd.level,
                 "1: the host opens the gates, 2: the device, 3: with time slices")
      ->check(CLI::Range(1, 3));
  app.add_option("--requests", setup.crowd.requests, "per second on each device")
      ->check(CLI::Range(0.1, 1e5));
  app.add_option("--copies", setup.crowd.copies, "per second of each batch job")->check(CLI::Range(0.0, 1e5));
  app.add_option("--seed", setup.crowd.seed, "when requests and copies come");
  app.add_option("--seconds", setup.seconds, "how long to measure")->check(CLI::Range(0.1, 3600.0));
  app.add_option("--policy", setup.policy, "of the server");
  app.add_flag("--fifo", setup.fifo, "give the server real-time priority, so that nothing else delays it");
  app.add_option("--xserver", setup.xserver, "another server than this build's");
  app.add_flag("--json", as_json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);

  RaiseDescriptorLimit();
  Pin(0, kClientCore);
  json rows = json::array();
  try {
    if (!as_json) PrintHeading();
    for (int of_devices : devices) {
      for (int of_programs : programs) {
        setup.crowd.devices = of_devices;
        setup.crowd.programs = of_programs;
        if (setup.crowd.programs < 2 * setup.crowd.devices)
          throw std::runtime_error("a device needs two programs");
        rows.push_back(Measure(setup));
        if (!as_json) PrintRow(rows.back());
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "scale_bench: {}\n", error.what());
    return 1;
  }
  const json wakeup = BareWakeup(kWakeups);
  if (as_json) {
    fmt::print("{}\n", json{{"rows", rows}, {"bare_wakeup_us", wakeup}}.dump(2));
  } else {
    fmt::print("the system's own time to wake a process on the server's core: p50 {:.1f}, p99 {:.1f}\n",
               wakeup["p50"].get<double>(), wakeup["p99"].get<double>());
  }
  return 0;
}
