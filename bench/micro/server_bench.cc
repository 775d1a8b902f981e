// Measures what xserver does per second, what it costs when nothing happens, and the delay from a doorbell to
// a gate. A real xserver process runs on one core, and simulated clients (without a device) run in this
// process on another.
//
//   server_bench [--json] [--seconds N] [--clients N] [--queues N] [--transitions N] [--scrape] [--xserver
//   PROGRAM]
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "measuring.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace {

using namespace xsched;
using namespace xsched::bench;
using nlohmann::json;
using server::testing::ServerProcess;
using server::testing::TempFolder;
using server::testing::TestAgent;
using server::testing::TestTool;

struct Setup {
  int clients = 256;
  uint32_t queues = 4;
  int devices = 8;
  double seconds = 5;
  int transitions = 20'000;
  bool scrape = false;
  std::string xserver = XSERVER_PROGRAM;
};

// A page of metrics. Its length; 0: none came.
size_t Scrape(const std::string& path) {
  UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) return 0;
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (send(client.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return 0;
  size_t length = 0;
  char part[65536];
  for (ssize_t got; (got = recv(client.get(), part, sizeof part, 0)) > 0;) length += static_cast<size_t>(got);
  return length;
}

// The server's own part of it; the page is made by another process.
json CostOfScrape(const ServerProcess& server, const std::string& metrics) {
  constexpr int kTimes = 200;
  size_t length = 0;
  const double before = server.cpu_seconds();
  for (int i = 0; i < kTimes; ++i) length = Scrape(metrics);
  return {{"server_cpu_us", (server.cpu_seconds() - before) / kTimes * 1e6}, {"page_bytes", length}};
}

// A process that reads the metrics each second, as Prometheus would at its shortest usual interval.
class Scraper {
 public:
  explicit Scraper(const std::string& path) : child_(fork()) {
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      Scrape(path);
      sleep(1);
    }
  }
  ~Scraper() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

 private:
  pid_t child_;
};

std::vector<std::unique_ptr<TestAgent>> Connect(const ServerProcess& server, const Setup& setup) {
  std::vector<std::unique_ptr<TestAgent>> agents;
  for (int i = 0; i < setup.clients; ++i) {
    auto agent = std::make_unique<TestAgent>(server.socket());
    // Each client uses one device. On each device, half of the clients are more urgent than the other half.
    uint64_t device = 1 + static_cast<uint64_t>(i) % static_cast<uint64_t>(setup.devices);
    for (uint32_t queue = 0; queue < setup.queues; ++queue) {
      if (!agent->CreateQueue(queue, i / setup.devices % 2, device)) throw std::runtime_error("no queue");
    }
    if (!agent->IsAlive()) throw std::runtime_error("a client was not served");
    agents.push_back(std::move(agent));
  }
  return agents;
}

// Woken agents read their messages, as real ones do.
void ReadWakes(TestAgent& agent) {
  ipc::Packet packet;
  while (ipc::ReceivePacket(agent.fd(), packet) == ipc::Received::kMessage) {
  }
}

// Every queue goes idle -> ready -> idle, repeatedly, as fast as this core can ring. The result is the
// server's own count of changes that it has read. Changes that it did not see do not count.
json Throughput(const ServerProcess& server, const Setup& setup, const std::string& metrics) {
  auto agents = Connect(server, setup);
  TestTool tool(server.socket());
  uint64_t before = tool.Status()->state_changes;
  double cpu_before = server.cpu_seconds();
  TimePoint start = MonotonicClock::now();
  uint64_t rung = 0;
  uint64_t round = 0;
  while (InSeconds(MonotonicClock::now() - start) < setup.seconds) {
    for (auto& agent : agents) {
      for (uint32_t queue = 0; queue < setup.queues; ++queue) {
        if (round % 2 == 0) {
          agent->Submit(queue);
        } else {
          agent->RetireAll(queue);
        }
        ++rung;
      }
      if (round % 16 == 0) ReadWakes(*agent);
    }
    ++round;
  }
  double elapsed = InSeconds(MonotonicClock::now() - start);
  double cpu = server.cpu_seconds() - cpu_before;
  for (auto& agent : agents) ReadWakes(*agent);
  uint64_t seen = tool.Status()->state_changes - before;
  long resident_kb = server.resident_kb();
  for (auto& agent : agents) {
    for (uint32_t queue = 0; queue < setup.queues; ++queue) agent->RetireAll(queue);
  }
  usleep(200'000);
  double idle_before = server.cpu_seconds();
  usleep(2'000'000);
  double idle = (server.cpu_seconds() - idle_before) / 2;
  const json scrape = setup.scrape ? CostOfScrape(server, metrics) : json();
  return {{"clients", setup.clients},
          {"queues", setup.clients * static_cast<int>(setup.queues)},
          {"changes_rung_per_s", static_cast<double>(rung) / elapsed},
          {"changes_handled_per_s", static_cast<double>(seen) / elapsed},
          {"changes_handled_per_cpu_s", static_cast<double>(seen) / cpu},
          {"cpu_busy", cpu / elapsed},
          {"resident_mib", static_cast<double>(resident_kb) / 1024},
          {"cpu_idle_percent", idle * 100},
          {"scrape", scrape}};
}

// False: not within a second.
template <typename Condition>
bool SpinUntil(const Condition& condition) {
  TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(1);
  while (!condition()) {
    if (MonotonicClock::now() > deadline) return false;
  }
  return true;
}

// From the store that makes client A's queue ready to the moment when client B sees its gate closed.
json SignalLatency(const ServerProcess& server, const Setup& setup) {
  TestAgent urgent(server.socket());
  TestAgent other(server.socket());
  if (!urgent.CreateQueue(0, 10, 99) || !other.CreateQueue(0, 0, 99)) throw std::runtime_error("no queue");
  if (!urgent.IsAlive() || !other.IsAlive()) throw std::runtime_error("a client was not served");
  other.Submit(0);
  std::vector<double> close_us;
  std::vector<double> open_us;
  for (int i = 0; i < setup.transitions; ++i) {
    // It has work, and retires a command from time to time, so that it does not count as stalled.
    other.block(0).submitted.fetch_add(1);
    TimePoint start = MonotonicClock::now();
    urgent.Submit(0);
    // If the machine keeps us from running here, the urgent client is stalled, and holds nothing.
    if (!SpinUntil([&] { return other.IsHeld(0); })) {
      urgent.RetireAll(0);
      continue;
    }
    close_us.push_back(InSeconds(MonotonicClock::now() - start) * 1e6);
    start = MonotonicClock::now();
    urgent.RetireAll(0);
    if (!SpinUntil([&] { return !other.IsHeld(0); })) throw std::runtime_error("a gate stays closed");
    open_us.push_back(InSeconds(MonotonicClock::now() - start) * 1e6);
    ReadWakes(urgent);
    ReadWakes(other);
    usleep(50);  // the server sleeps before each transition
  }
  if (close_us.empty()) throw std::runtime_error("no gate ever closed");
  return {{"transitions", close_us.size()},
          {"ready_to_hold_us", Quantiles(close_us)},
          {"idle_to_run_us", Quantiles(open_us)},
          {"bare_wakeup_us", BareWakeup(setup.transitions / 4)}};
}

void PrintTable(const json& throughput, const json& latency) {
  auto line = [](const char* what, double value, const char* unit, const char* target) {
    fmt::print("{:<46} {:>12.1f} {:<6} {}\n", what, value, unit, target);
  };
  fmt::print("xserver on one core, {} clients, {} queues\n", throughput["clients"].get<int>(),
             throughput["queues"].get<int>());
  line("state changes handled per second", throughput["changes_handled_per_s"], "1/s", ">= 200000");
  line("  per second of its processor time", throughput["changes_handled_per_cpu_s"], "1/s", "");
  line("  rung per second by the clients", throughput["changes_rung_per_s"], "1/s", "");
  line("resident memory", throughput["resident_mib"], "MiB", "<= 64");
  line("processor time when nothing changes", throughput["cpu_idle_percent"], "%", "<= 1");
  if (const json& scrape = throughput["scrape"]; !scrape.is_null())
    line("processor time of the server per reading of metrics", scrape["server_cpu_us"], "us", "");
  fmt::print("from one client's idle -> ready to another's closed gate, {} times\n",
             latency["transitions"].get<int>());
  const json& close = latency["ready_to_hold_us"];
  line("p50", close["p50"], "us", "<= 15");
  line("p99", close["p99"], "us", "<= 100");
  line("p99.9", close["p999"], "us", "");
  line("max", close["max"], "us", "");
  fmt::print("the system's own time to wake a process on that core, for comparison\n");
  line("p50", latency["bare_wakeup_us"]["p50"], "us", "");
  line("p99", latency["bare_wakeup_us"]["p99"], "us", "");
  fmt::print("from ready -> idle to the gate open again (the grace period included)\n");
  line("p50", latency["idle_to_run_us"]["p50"], "us", "");
  line("p99", latency["idle_to_run_us"]["p99"], "us", "");
}

}  // namespace

int main(int argc, char** argv) {
  Setup setup;
  bool as_json = false;
  CLI::App app("Figures of xserver");
  app.add_flag("--json", as_json, "print JSON instead of a table");
  app.add_option("--seconds", setup.seconds, "how long to measure the throughput");
  app.add_option("--clients", setup.clients, "simulated clients")->check(CLI::Range(1, 4000));
  app.add_option("--queues", setup.queues, "queues of each")->check(CLI::Range(1, 1024));
  app.add_option("--devices", setup.devices, "devices that they share")->check(CLI::Range(1, 64));
  app.add_option("--transitions", setup.transitions, "for the latency")->check(CLI::Range(100, 10'000'000));
  app.add_flag("--scrape", setup.scrape, "read the server's metrics each second");
  app.add_option("--xserver", setup.xserver, "another server than this build's");
  CLI11_PARSE(app, argc, argv);

  TempFolder folder;
  const std::string metrics = folder.path() + "/metrics";
  std::vector<std::string> arguments = {"--user", "--policy", "HPF"};
  if (setup.scrape) arguments.insert(arguments.end(), {"--metrics", metrics});
  ServerProcess server(setup.xserver, folder.path() + "/xserver.sock", arguments);
  if (!server.ready()) {
    fmt::print(stderr, "{}", server.errors());
    return 1;
  }
  Pin(server.pid(), 0);
  Pin(0, 1);
  std::unique_ptr<Scraper> scraper;
  if (setup.scrape) {
    if (!server::testing::Eventually([&] { return Scrape(metrics) != 0; })) {
      fmt::print(stderr, "no metrics: {}", server.errors());
      return 1;
    }
    scraper = std::make_unique<Scraper>(metrics);
  }
  json latency = SignalLatency(server, setup);
  json throughput = Throughput(server, setup, metrics);
  if (as_json) {
    fmt::print("{}\n", json{{"throughput", throughput}, {"latency", latency}}.dump(2));
  } else {
    PrintTable(throughput, latency);
  }
  return 0;
}
