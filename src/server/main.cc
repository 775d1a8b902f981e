// xserver: parses its options, opens its socket, and runs the server.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <utility>
#include <vector>

#include "base/standard_descriptors.h"
#include "server/http/start.h"
#include "server/listener.h"
#include "server/log_output.h"
#include "server/options.h"
#include "server/policy_names.h"
#include "server/server.h"

namespace {

using namespace xsched::server;

constexpr int kExitFailed = 1;
constexpr int kExitAlreadyRunning = 3;

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The server works for microseconds at a time, and others wait for it. So it asks the kernel to run it first
// on a busy processor. If that is refused (an old kernel, no privilege), delays are longer, and nothing else
// changes.
void AskForLowLatency() {
  setpriority(PRIO_PROCESS, 0, -10);
  // The kernel's own struct (linux/sched/types.h clashes with sched.h). A short slice means an early virtual
  // deadline; it needs no privilege (Linux 6.12).
  struct {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns;
    uint64_t deadline_ns;
    uint64_t period_ns;
  } attributes{};
  attributes.size = sizeof attributes;
  attributes.policy = SCHED_OTHER;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime_ns = 100'000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// The starting process may have given up and left a pipe without a reader.
void SayReady(int fd) {
  LogOutput(fd).Write("\n");
  close(fd);
}

// The scheduler does not depend on it.
void StartHttpOrSay(const Options& options, const http::Address& address, http::Serve what,
                    const std::string& socket, std::vector<http::Program>& programs) {
  const char* served = what == http::Serve::kMetricsOnly ? "metrics" : "HTTP";
  try {
    FindGroup(options.metrics_group);  // xserver-http would end without it, and nobody would see why
    programs.push_back(http::StartHttp(options, address, what, socket));
    spdlog::info("{} at {}", served, TextOf(address));
  } catch (const std::exception& error) {
    spdlog::error("no {} at {}: {}", served, TextOf(address), error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  xsched::OpenStandardDescriptors();
  LogOutput errors(STDERR_FILENO);
  try {
    Options options = ParseOptions(argc, argv);
    SendLogTo(errors);
    spdlog::set_pattern("xserver: %v");
    spdlog::set_level(spdlog::level::from_str(options.log_level));
    // Clients must not be able to end the server, and each of them needs two descriptors.
    signal(SIGPIPE, SIG_IGN);
    // Whoever started us may ignore it. Then nothing would say that a child ends.
    signal(SIGCHLD, SIG_DFL);
    RaiseDescriptorLimit();
    AskForLowLatency();
    Listener listener(options.socket, options.mode, FindGroup(options.group));
    std::vector<http::Program> programs;
    if (options.http_port)
      StartHttpOrSay(options, {*options.http_port, ""}, http::Serve::kEverything, listener.path(), programs);
    if (options.metrics)
      StartHttpOrSay(options, *options.metrics, http::Serve::kMetricsOnly, listener.path(), programs);
    Server server(options, listener);
    server.Watch(std::move(programs));
    spdlog::info("listening at {}, policy {}", listener.path(), xsched::server::TextOf(options.policy));
    if (options.ready_fd >= 0) SayReady(options.ready_fd);
    server.Run();
    spdlog::info("stopped");
  } catch (const AlreadyRunning& error) {
    errors.Write(fmt::format("xserver: {}\n", error.what()));
    return kExitAlreadyRunning;
  } catch (const std::exception& error) {
    errors.Write(fmt::format("xserver: {}\n", error.what()));
    return kExitFailed;
  }
  return 0;
}
