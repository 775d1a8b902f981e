#include "kubernetes/pod_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/dra_claim.h"
#include "kubernetes/pod_resources.h"
#include "kubernetes/say.h"

namespace xsched::kubernetes {
namespace {

// A pod that has just come may not be in the list yet. It is asked for again soon, and some times only: there
// may be none (a static pod that the kubelet does not list).
constexpr Duration kShortestRefresh = std::chrono::seconds(2);
constexpr int kMostTries = 5;

// What was known stays, if nothing better comes.
template <typename List>
bool ReadList(const ApiServer& api, const std::string& path, Result<List> (*parse)(std::string_view),
              List& known, std::vector<std::string>& problems) {
  Result<std::string> text = api.Get(path);
  Result<List> read = text ? parse(*text) : Result<List>(text.error());
  if (read) {
    known = std::move(*read);
  } else {
    problems.push_back(fmt::format("pods are not known: {}", read.error().text()));
  }
  return static_cast<bool>(read);
}

}  // namespace

PodTable::PodTable(const PodOptions& options)
    : options_(options), api_{options.api_server, options.account} {}

PodTable::~PodTable() { has_ended_ = true; }

std::optional<PodPriority> PodTable::Find(const std::string& uid) {
  if (!known_.pods.contains(uid)) {
    missing_[uid].is_asked = true;
    Attend();
  }
  const auto pod = known_.pods.find(uid);
  if (pod == known_.pods.end()) return std::nullopt;
  missing_.erase(uid);
  const auto claimed = known_.claimed.find(uid);
  pod->second.claimed = claimed == known_.claimed.end() ? std::nullopt : claimed->second;
  const PodPriority result = PriorityOf(pod->second, known_.classes, options_.max_priority);
  if (!result.problem.empty()) SayOnce(fmt::format("pod {}: {}", pod->second.name, result.problem));
  return result;
}

void PodTable::Attend() {
  if (asking_.valid()) {
    if (asking_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    known_ = asking_.get();
    for (const std::string& problem : known_.problems) SayOnce(problem);
  }
  const TimePoint now = MonotonicClock::now();
  if (!IsDue(now)) return;
  asked_ = now;
  std::erase_if(missing_, [](const auto& entry) { return !entry.second.is_asked; });
  for (auto& [uid, missing] : missing_) missing = {missing.tries + 1, false};
  asking_ =
      std::async(std::launch::async, [this, known = known_]() mutable { return Ask(std::move(known)); });
}

// Not before the first pod is wanted.
bool PodTable::IsDue(TimePoint now) const {
  if (asked_ == TimePoint{}) return !missing_.empty();
  const bool is_soon =
      std::ranges::any_of(missing_, [](const auto& entry) { return entry.second.tries < kMostTries; });
  const Duration period = options_.refresh_period;
  return now >= asked_ + (is_soon ? std::min(period, kShortestRefresh) : period);
}

PodTable::Known PodTable::Ask(Known known) const {
  known.problems.clear();
  // Version 0: what the server has in its memory, which costs it little.
  const bool is_read =
      ReadList(api_, "/apis/scheduling.k8s.io/v1/priorityclasses?resourceVersion=0", ReadPriorityClasses,
               known.classes, known.problems) &&
      !has_ended_ &&
      ReadList(api_, "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D" + options_.node,
               ReadPods, known.pods, known.problems);
  if (!is_read || has_ended_) return known;
  ReadStaticPods(known);
  if (options_.reads_claims) ReadClaims(known);
  return known;
}

// The kubelet is asked only if the API server has mirror pods.
void PodTable::ReadStaticPods(Known& known) const {
  if (HasMirrorPods(known.pods)) ConfirmMirrors(known);
  AddStaticPods(known.pods, known.confirmed);
}

// While the kubelet does not answer, the mirror pods that it has confirmed count. A name that it has listed
// is not enough: an ordinary pod may have had it.
void PodTable::ConfirmMirrors(Known& known) const {
  Result<v1::ListPodResourcesResponse> list = ListPodResources(options_.pod_resources);
  if (!list) {
    known.problems.push_back(fmt::format("static pods are not known: {}", list.error().text()));
    return;
  }
  std::set<std::string> listed;
  for (const v1::PodResources& pod : list->pod_resources()) listed.insert(NameOf(pod));
  known.confirmed = ConfirmedMirrors(known.pods, listed);
}

// A claim does not change while a pod has it.
void PodTable::ReadClaims(Known& known) const {
  std::erase_if(known.claimed, [&](const auto& entry) { return !known.pods.contains(entry.first); });
  for (const auto& [uid, pod] : known.pods) {
    if (has_ended_) return;
    if (pod.claims.empty() || known.claimed.contains(uid)) continue;
    if (auto claimed = ClaimedBy(pod, known.problems)) known.claimed[uid] = *claimed;
  }
}

// What the first of its claims asks for that asks for anything. nullopt: one of them is not known (yet).
std::optional<std::optional<int>> PodTable::ClaimedBy(const Pod& pod,
                                                      std::vector<std::string>& problems) const {
  std::optional<int> priority;
  const std::string name_space = pod.name.substr(0, pod.name.find('/'));
  for (const std::string& name : pod.claims) {
    if (priority) break;
    Result<std::string> text = api_.Get(PathOfClaim(name_space, name));
    Result<Claim> claim = text ? ReadClaim(*text) : Result<Claim>(text.error());
    if (!claim) {
      problems.push_back(
          fmt::format("pod {}: its claim {} is not known: {}", pod.name, name, claim.error().text()));
      return std::nullopt;
    }
    if (!claim->is_allocated) return std::nullopt;  // its pod has just come
    for (const AllocatedDevice& device : claim->devices) {
      if (!priority) priority = device.parameters.priority;
    }
  }
  return priority;
}

void PodTable::SayOnce(const std::string& text) {
  constexpr size_t kMost = 1000;
  if (said_.size() >= kMost) said_.clear();
  if (said_.insert(text).second) Say(text);
}

}  // namespace xsched::kubernetes
