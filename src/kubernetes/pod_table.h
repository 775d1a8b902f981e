// What is known of the pods of this node, as the API server has them. Of static pods, it has copies under
// other uids, the mirror pods: which of them count, the kubelet says.
//
// It is asked on a thread of its own: one that is slow, or not there, holds nobody up. What was known stays
// until it answers. Pods that have gone are gone with its next list.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kubernetes/api_server.h"
#include "kubernetes/pods.h"
#include "kubernetes/serve_pods.h"

namespace xsched::kubernetes {

class PodTable {
 public:
  explicit PodTable(const PodOptions& options);
  // Waits for an answer that is under way, for some seconds at most.
  ~PodTable();
  PodTable(const PodTable&) = delete;
  PodTable& operator=(const PodTable&) = delete;

  // nullopt: it is not known (yet). REQUIRES: whoever wants to know it asks again now and then.
  std::optional<PodPriority> Find(const std::string& uid);
  // Takes what has been answered, and asks again when it is time.
  void Attend();

 private:
  struct Known {
    Pods pods;
    ClassPriorities classes;
    MirrorNames confirmed;                              // by the kubelet
    std::map<std::string, std::optional<int>> claimed;  // by uid of the pod: what its claims ask for
    std::vector<std::string> problems;                  // of the last time
  };
  struct Missing {
    int tries = 0;         // how often the API server was asked since it is missing
    bool is_asked = true;  // somebody has wanted to know it since then
  };

  // On a thread of its own. Returns `known` with what is better.
  Known Ask(Known known) const;
  void ReadStaticPods(Known& known) const;
  void ConfirmMirrors(Known& known) const;
  void ReadClaims(Known& known) const;
  std::optional<std::optional<int>> ClaimedBy(const Pod& pod, std::vector<std::string>& problems) const;
  bool IsDue(TimePoint now) const;
  void SayOnce(const std::string& text);

  const PodOptions options_;
  const ApiServer api_;
  Known known_;
  std::map<std::string, Missing> missing_;  // by uid
  TimePoint asked_{};
  std::set<std::string> said_;
  std::atomic<bool> has_ended_ = false;
  std::future<Known> asking_;  // the last member: it ends before what it uses
};

}  // namespace xsched::kubernetes
