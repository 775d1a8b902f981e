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
#include "xsched/types.h"

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
  struct Laxity {
    int64_t us;
    int32_t lax_priority;
    int32_t critical_priority;

    bool operator==(const Laxity&) const = default;
  };
  struct Setting {
    std::optional<int> said;       // the pod's priority at that time
    std::optional<Laxity> laxity;  // what was set; nullopt: the queue had none
  };

  std::optional<PodPriority> PodPriorityOf(int32_t pid) {
    const std::string pod = server::IdentityOf(pid).pod;
    return pod.empty() ? std::nullopt : pods_.Find(pod);
  }

  // What a queue's priorities are is set where they would not count as they are: as a claim above what the
  // tenant may have, they would lower the queues of all pods that are of the same tenant. A priority of the
  // program's own that counts already is not set: the program may have changed it since it was read.
  Setting Settled(const ipc::QueueInfo& queue, const PodPriority& pod) {
    const auto found = set_.find(queue.queue_id);
    const Setting* before = found == set_.end() ? nullptr : &found->second;
    const bool is_new = before == nullptr || before->said != pod.priority;
    const Setting now{pod.priority, LaxityFor(queue, pod)};
    const int priority = PriorityFor(queue, pod, is_new);
    ipc::SetHints request{};
    request.queue_id = queue.queue_id;
    if (is_new || !HasPriority(queue, priority)) request.mask |= ipc::kHintPriority;
    if (now.laxity && (before == nullptr || before->laxity != now.laxity || LaxityOf(queue) != now.laxity))
      request.mask |= ipc::kHintLaxity;
    request.hints.priority = priority;
    if (now.laxity) {
      request.hints.laxity_us = now.laxity->us;
      request.hints.lax_priority = now.laxity->lax_priority;
      request.hints.critical_priority = now.laxity->critical_priority;
    }
    if (request.mask != 0) Set(queue, request);
    return now;
  }

  // What is said of the pod counts when it is new; otherwise what the program asks for, as far as the pod
  // may.
  static int PriorityFor(const ipc::QueueInfo& queue, const PodPriority& pod, bool is_new) {
    const int own = std::min<int>(queue.hints.priority, pod.highest);
    return is_new ? pod.priority.value_or(own) : own;
  }

  // A program that has set another priority, and this one again, since the last look has a claim only.
  static bool HasPriority(const ipc::QueueInfo& queue, int priority) {
    const bool says_what_counts = queue.tenant[0] != '\0';  // older servers do not
    return queue.hints.priority == priority && (!says_what_counts || queue.counted_priority == priority);
  }

  static std::optional<Laxity> LaxityOf(const ipc::QueueInfo& queue) {
    if (queue.hints.laxity_us == NO_LAXITY) return std::nullopt;
    return Laxity{queue.hints.laxity_us, queue.hints.lax_priority, queue.hints.critical_priority};
  }

  static std::optional<Laxity> LaxityFor(const ipc::QueueInfo& queue, const PodPriority& pod) {
    std::optional<Laxity> laxity = LaxityOf(queue);
    if (!laxity) return laxity;
    laxity->lax_priority = std::min<int32_t>(laxity->lax_priority, pod.highest);
    laxity->critical_priority = std::min<int32_t>(laxity->critical_priority, pod.highest);
    return laxity;
  }

  void Set(const ipc::QueueInfo& queue, const ipc::SetHints& request) {
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
