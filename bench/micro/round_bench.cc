// Rounds of the server, in this process and on one thread, so that they are the same in each run: an urgent
// queue becomes ready and idle while another one is held and runs again. For comparing builds, above all by
// the number of instructions, which does not depend on what else the machine does:
//
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*Server::Round*' round_bench
//   2000
#include <fmt/format.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "server/listener.h"
#include "server/options.h"
#include "server/server.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace {

using xsched::server::testing::TestAgent;

constexpr int kAgents = 16;

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// The server answers them, so they come on another thread.
std::vector<std::unique_ptr<TestAgent>> Connect(xsched::server::Server& server,
                                                const xsched::ipc::SocketPath& path) {
  std::vector<std::unique_ptr<TestAgent>> agents;
  std::atomic<bool> done{false};
  std::thread clients([&] {
    for (int i = 0; i < kAgents; ++i) {
      agents.push_back(std::make_unique<TestAgent>(path));
      agents.back()->CreateQueue(0, i == 0 ? 1 : 0);
      agents.back()->IsAlive();
    }
    done = true;
  });
  while (!done) server.Round(1);
  clients.join();
  return agents;
}

}  // namespace

int main(int argc, char** argv) {
  const int times = argc > 1 ? atoi(argv[1]) : 20'000;
  const xsched::server::testing::TempFolder folder;
  const std::string socket = folder.path() + "/s";
  xsched::server::Listener listener(socket, 0600, std::nullopt);
  xsched::server::Server server(xsched::server::Options{}, listener);
  xsched::ipc::SocketPath path{};
  socket.copy(path.text, sizeof path.text - 1);
  auto agents = Connect(server, path);
  for (size_t i = 1; i < agents.size(); ++i) agents[i]->Submit(0, 1'000'000);
  server.Round(0);
  const double begin = CpuSeconds();
  for (int i = 0; i < times; ++i) {
    agents[0]->Submit(0);
    server.Round(0);
    agents[0]->RetireAll(0);
    server.Round(0);
    if (i % 16 != 0) continue;
    for (auto& agent : agents) agent->ReadAll();
  }
  fmt::print("{} pairs of rounds, {:.2f} µs of processor time each, with those of the clients\n", times,
             (CpuSeconds() - begin) / times * 1e6);
  return 0;
}
