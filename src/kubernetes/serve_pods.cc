#include "kubernetes/serve_pods.h"

#include <fmt/format.h>
#include <poll.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "cli/exit_codes.h"
#include "cli/server_session.h"
#include "kubernetes/api_server.h"
#include "kubernetes/end_signals.h"
#include "kubernetes/pods.h"
#include "kubernetes/say.h"
#include "server/tenants/process_identity.h"

namespace xsched::kubernetes {
namespace {

// A pod that has just come may not be in the list yet. It is asked for again, and not at every look.
constexpr Duration kShortestRefresh = std::chrono::seconds(2);

// The uid of its pod; empty: it is in none.
std::string PodOfProcess(int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  std::ostringstream text;
  text << file.rdbuf();
  return server::IdentityIn(text.str()).pod;
}

// What is known of the pods of this node.
class PodTable {
 public:
  explicit PodTable(const PodOptions& options)
      : options_(options), api_{options.api_server, options.account} {}

  // nullopt: nobody has said anything of it, or it is not known (yet).
  std::optional<int> PriorityOf(const std::string& uid) {
    if (!pods_.contains(uid)) Refresh(kShortestRefresh);
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) return std::nullopt;
    const PodPriority result = kubernetes::PriorityOf(pod->second, classes_, options_.max_priority);
    if (!result.problem.empty()) SayOnce(fmt::format("pod {}: {}", pod->second.name, result.problem));
    return result.priority;
  }
  void RefreshIfOld() {
    if (!pods_.empty()) Refresh(options_.refresh_period);
  }

 private:
  // Unless that was done less than `age` ago.
  void Refresh(Duration age) {
    const TimePoint now = MonotonicClock::now();
    if (asked_ != TimePoint{} && now < asked_ + age) return;
    asked_ = now;
    // Version 0: what the server has in its memory, which costs it little.
    Result<std::string> pods =
        api_.Get("/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D" + options_.node);
    Result<std::string> classes = api_.Get("/apis/scheduling.k8s.io/v1/priorityclasses?resourceVersion=0");
    if (!pods) return SayOnce(fmt::format("pods are not known: {}", pods.error().text()));
    if (!classes) return SayOnce(fmt::format("PriorityClasses are not known: {}", classes.error().text()));
    Result<Pods> read_pods = ReadPods(*pods);
    Result<ClassPriorities> read_classes = ReadPriorityClasses(*classes);
    if (!read_pods || !read_classes) return SayOnce("pods are not known: the API server's answer is no list");
    pods_ = std::move(*read_pods);
    classes_ = std::move(*read_classes);
  }

  void SayOnce(const std::string& text) {
    constexpr size_t kMost = 1000;
    if (said_.size() >= kMost) said_.clear();
    if (said_.insert(text).second) Say(text);
  }

  const PodOptions& options_;
  const ApiServer api_;
  Pods pods_;
  ClassPriorities classes_;
  TimePoint asked_{};
  std::set<std::string> said_;
};

// Gives queues the priority of their pods, by one connection to the server.
class Setter {
 public:
  explicit Setter(PodTable& pods) : pods_(pods) {}

  void Look() {
    std::map<uint64_t, int> seen;
    std::map<int32_t, std::optional<int>> of_process;
    for (const ipc::QueueInfo& queue : server_.List()) {
      auto [entry, is_new] = of_process.try_emplace(queue.pid);
      if (is_new) entry->second = PriorityOfProcess(queue.pid);
      if (!entry->second) continue;
      const auto set = set_.find(queue.queue_id);
      if (set == set_.end() || set->second != *entry->second) Set(queue, *entry->second);
      seen[queue.queue_id] = *entry->second;
    }
    set_ = std::move(seen);
  }

 private:
  std::optional<int> PriorityOfProcess(int32_t pid) {
    const std::string pod = PodOfProcess(pid);
    return pod.empty() ? std::nullopt : pods_.PriorityOf(pod);
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
  std::map<uint64_t, int> set_;  // what was set, of the queues that there are
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
      pods.RefreshIfOld();
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
