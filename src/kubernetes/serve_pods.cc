#include "kubernetes/serve_pods.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "cli/exit_codes.h"
#include "cli/server_session.h"
#include "kubernetes/dra_claim.h"
#include "kubernetes/end_signals.h"
#include "kubernetes/pods.h"
#include "kubernetes/say.h"
#include "server/tenants/process_identity.h"

namespace xsched::kubernetes {
namespace {

// A pod that has just come may not be in the list yet. It is asked for again soon, and some times only: there
// may be none (static pods have another uid there).
constexpr Duration kShortestRefresh = std::chrono::seconds(2);
constexpr int kMostTries = 5;

// What is known of the pods of this node.
class PodTable {
 public:
  explicit PodTable(const PodOptions& options)
      : options_(options), api_{options.api_server, options.account} {}

  // nullopt: it is not known (yet).
  std::optional<PodPriority> Find(const std::string& uid) {
    if (!pods_.contains(uid) && missing_[uid] < kMostTries && Refresh(kShortestRefresh)) ++missing_[uid];
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) return std::nullopt;
    missing_.erase(uid);
    if (options_.reads_claims) pod->second.claimed = ClaimedBy(uid, pod->second);
    const PodPriority result = PriorityOf(pod->second, classes_, options_.max_priority);
    if (!result.problem.empty()) SayOnce(fmt::format("pod {}: {}", pod->second.name, result.problem));
    return result;
  }
  void RefreshIfOld() {
    if (asked_ != TimePoint{}) Refresh(options_.refresh_period);
  }

 private:
  // Unless that was done less than `age` ago: then it returns false.
  bool Refresh(Duration age) {
    const TimePoint now = MonotonicClock::now();
    if (asked_ != TimePoint{} && now < asked_ + age) return false;
    asked_ = now;
    // Version 0: what the server has in its memory, which costs it little.
    Read("/apis/scheduling.k8s.io/v1/priorityclasses?resourceVersion=0", ReadPriorityClasses, classes_) &&
        Read("/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D" + options_.node, ReadPods,
             pods_);
    std::erase_if(claimed_,
                  [&](const auto& entry) { return !entry.second.is_known || !pods_.contains(entry.first); });
    return true;
  }

  struct Claimed {
    bool is_known = true;  // false: a claim could not be read
    std::optional<int> priority;
  };

  // A claim does not change while a pod has it.
  std::optional<int> ClaimedBy(const std::string& uid, const Pod& pod) {
    const auto [entry, is_new] = claimed_.try_emplace(uid);
    if (is_new) entry->second = ReadClaimed(pod);
    return entry->second.priority;
  }

  // Of the first claim that asks for one.
  Claimed ReadClaimed(const Pod& pod) {
    Claimed claimed;
    const std::string name_space = pod.name.substr(0, pod.name.find('/'));
    for (const std::string& name : pod.claims) {
      Result<std::string> text = api_.Get(PathOfClaim(name_space, name));
      Result<Claim> claim = text ? ReadClaim(*text) : Result<Claim>(text.error());
      if (!claim) {
        SayOnce(fmt::format("pod {}: its claim {} is not known: {}", pod.name, name, claim.error().text()));
        claimed.is_known = false;
        continue;
      }
      for (const AllocatedDevice& device : claim->devices) {
        if (!claimed.priority) claimed.priority = device.parameters.priority;
      }
    }
    return claimed;
  }

  // What was known stays, if nothing better comes.
  template <typename Known>
  bool Read(const std::string& path, Result<Known> (*parse)(std::string_view), Known& known) {
    Result<std::string> text = api_.Get(path);
    Result<Known> read = text ? parse(*text) : Result<Known>(text.error());
    if (read) {
      known = std::move(*read);
    } else {
      SayOnce(fmt::format("pods are not known: {}", read.error().text()));
    }
    return static_cast<bool>(read);
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
  std::map<std::string, Claimed> claimed_;  // by uid of the pod
  std::map<std::string, int> missing_;      // by uid: how often it was asked for in vain
  TimePoint asked_{};
  std::set<std::string> said_;
};

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
