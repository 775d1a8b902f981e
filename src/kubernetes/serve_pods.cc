#include "kubernetes/serve_pods.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/exit_codes.h"
#include "cli/server_session.h"
#include "kubernetes/end_signals.h"
#include "kubernetes/pod_table.h"
#include "kubernetes/say.h"
#include "server/tenants/process_identity.h"

namespace xsched::kubernetes {
namespace {

// Gives queues the priority of their pods, by one connection to the server.
class Setter {
 public:
  explicit Setter(PodTable& pods) : pods_(pods) {}

  void Look() {
    std::map<uint64_t, Setting> seen;
    std::map<int32_t, std::optional<PodPriority>> of_process;
    for (const ipc::QueueInfo& queue : server_.List()) {
      auto [entry, is_new] = of_process.try_emplace(queue.pid);
      if (is_new) entry->second = PodPriorityOf(queue.pid);
      if (entry->second) seen[queue.queue_id] = Settled(queue, *entry->second);
    }
    set_ = std::move(seen);
  }

 private:
  struct Setting {
    std::optional<int> said;  // the pod's priority at that time
    int priority = 0;         // what was set
  };

  std::optional<PodPriority> PodPriorityOf(int32_t pid) {
    const std::string pod = server::IdentityOf(pid).pod;
    return pod.empty() ? std::nullopt : pods_.Find(pod);
  }

  // What is said of the pod counts when it is new; otherwise what the program asks for, as far as the pod
  // may.
  Setting Settled(const ipc::QueueInfo& queue, const PodPriority& pod) {
    const auto before = set_.find(queue.queue_id);
    const bool is_known = before != set_.end() && before->second.said == pod.priority;
    if (is_known && queue.hints.priority == before->second.priority && queue.hints.priority <= pod.highest)
      return before->second;
    const int own = std::min<int>(queue.hints.priority, pod.highest);
    const Setting now{pod.priority, is_known ? own : pod.priority.value_or(own)};
    Set(queue, now.priority);
    return now;
  }

  void Set(const ipc::QueueInfo& queue, int priority) {
    ipc::SetHints request{};
    request.queue_id = queue.queue_id;
    request.mask = ipc::kHintPriority;
    request.hints.priority = priority;
    try {
      server_.SetHints(request);
    } catch (const cli::CommandError& error) {
      // It may have gone since. Whatever else it is, the server says it.
      if (error.code == cli::kExitNoServer) throw;
      Say(fmt::format("queue {} of process {}: {}", queue.queue_id, queue.pid, error.what()));
    }
  }

  cli::ServerSession server_;
  PodTable& pods_;
  std::map<uint64_t, Setting> set_;  // of the queues that there are
};

}  // namespace

void ServePods(const PodOptions& options) {
  const EndSignals signals;
  if (options.api_server.empty())
    throw cli::CommandError(cli::kExitUsage, "this is no pod of a cluster: --api-server is missing");
  PodTable pods(options);
  std::optional<Setter> setter;
  std::string said;
  while (!signals.HaveCome()) {
    try {
      if (!setter) setter.emplace(pods);
      pods.Attend();
      setter->Look();
      said.clear();
    } catch (const cli::CommandError& error) {
      setter.reset();
      if (said != error.what()) Say(error.what());
      said = error.what();
    }
    pollfd end{signals.fd(), POLLIN, 0};
    poll(&end, 1, static_cast<int>(options.look_period.count()));
  }
}

}  // namespace xsched::kubernetes
