#include "kubernetes/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/cdi/specification.h"
#include "kubernetes/json_members.h"
#include "kubernetes/text.h"
#include "xsched/types.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;

std::string AnnotationIn(const json& metadata, const char* name = kPriorityAnnotation) {
  return TextIn(MemberOrNothing(metadata, "annotations"), name);
}

std::string HamiPriorityIn(const json& spec) {
  for (const json& container : MemberOrNothing(spec, "containers")) {
    for (const json& variable : MemberOrNothing(container, "env")) {
      if (TextIn(variable, "name") == kHamiPriority) return TextIn(variable, "value");
    }
  }
  return "";
}

// Those that are named, and those that were made for the pod by a template.
std::vector<std::string> ClaimsOf(const json& spec, const json& status) {
  std::vector<std::string> claims;
  for (const json* list :
       {&MemberOrNothing(spec, "resourceClaims"), &MemberOrNothing(status, "resourceClaimStatuses")}) {
    for (const json& entry : *list) {
      const std::string name = TextIn(entry, "resourceClaimName");
      if (!name.empty()) claims.push_back(name);
    }
  }
  return claims;
}

template <typename Take>
Result<> ForEachItem(std::string_view text, Take&& take) {
  const json list = json::parse(text, nullptr, false);
  const json& items = MemberOrNothing(list, "items");
  // The API server writes an empty list as null.
  if (list.is_discarded() || Member(list, "items") == nullptr || !(items.is_array() || items.is_null()))
    return Error::Make("the API server's answer is no list");
  for (const json& item : items) take(item, MemberOrNothing(item, "metadata"));
  return Ok();
}

std::optional<int> ReadPriority(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || at != end || value < PRIORITY_MIN || value > PRIORITY_MAX)
    return std::nullopt;
  return value;
}

std::string NoPriority(const std::string& what, const std::string& text) {
  return fmt::format("{} \"{}\" is no number from {} to {}", what, Beginning(text), PRIORITY_MIN,
                     PRIORITY_MAX);
}

std::optional<int> AskedBy(const Pod& pod, std::string& problem) {
  if (!pod.asked.empty()) {
    const std::optional<int> asked = ReadPriority(pod.asked);
    if (!asked) problem = NoPriority(std::string("its annotation ") + kPriorityAnnotation, pod.asked);
    return asked;
  }
  if (pod.claimed) return pod.claimed;
  if (pod.hami_priority.empty()) return std::nullopt;
  return pod.hami_priority == "0" ? cli::kUrgentPriority : cli::kBatchPriority;
}

}  // namespace

Result<Pods> ReadPods(std::string_view text) {
  Pods pods;
  Result<> done = ForEachItem(text, [&](const json& item, const json& metadata) {
    const std::string uid = TextIn(metadata, "uid");
    const json& spec = MemberOrNothing(item, "spec");
    if (uid.empty()) return;
    pods[uid] = {.name = TextIn(metadata, "namespace") + "/" + TextIn(metadata, "name"),
                 .priority_class = TextIn(spec, "priorityClassName"),
                 .asked = AnnotationIn(metadata),
                 .hami_priority = HamiPriorityIn(spec),
                 .mirrored = AnnotationIn(metadata, kMirrorAnnotation),
                 .claims = ClaimsOf(spec, MemberOrNothing(item, "status"))};
  });
  if (!done) return done.error();
  return pods;
}

bool HasMirrorPods(const Pods& pods) {
  return std::ranges::any_of(pods, [](const auto& entry) { return !entry.second.mirrored.empty(); });
}

MirrorNames ConfirmedMirrors(const Pods& pods, const std::set<std::string>& listed) {
  MirrorNames names;
  std::set<std::string> disputed;
  for (const auto& [uid, pod] : pods) {
    if (pod.mirrored.empty() || !listed.contains(pod.name)) continue;
    if (!names.emplace(pod.mirrored, pod.name).second) disputed.insert(pod.mirrored);
  }
  for (const std::string& uid : disputed) names.erase(uid);
  return names;
}

// A pod that has the uid itself takes precedence.
void AddStaticPods(Pods& pods, MirrorNames& confirmed) {
  Pods of_node;
  for (const auto& [uid, pod] : pods) {
    const auto mirror = confirmed.find(pod.mirrored);
    if (mirror != confirmed.end() && mirror->second == pod.name) of_node.emplace(pod.mirrored, pod);
  }
  std::erase_if(confirmed, [&](const auto& entry) { return !of_node.contains(entry.first); });
  pods.merge(of_node);
}

Result<ClassPriorities> ReadPriorityClasses(std::string_view text) {
  ClassPriorities classes;
  Result<> done = ForEachItem(text, [&](const json&, const json& metadata) {
    const std::string annotation = AnnotationIn(metadata);
    if (!annotation.empty()) classes[TextIn(metadata, "name")] = annotation;
  });
  if (!done) return done.error();
  return classes;
}

PodPriority PriorityOf(const Pod& pod, const ClassPriorities& classes, int most) {
  PodPriority result;
  std::optional<int> of_class;
  if (const auto found = classes.find(pod.priority_class); found != classes.end()) {
    of_class = ReadPriority(found->second);
    if (!of_class)
      result.problem = NoPriority("the annotation of PriorityClass " + found->first, found->second);
  }
  result.highest = std::min(of_class.value_or(kPriorityWithoutRight), most);
  const std::optional<int> asked = AskedBy(pod, result.problem);
  result.priority = asked ? asked : of_class;
  if (!result.priority || *result.priority <= result.highest) return result;
  result.problem = fmt::format(
      "priority {} is lowered to {}, the highest that its PriorityClass {} and "
      "--max-priority allow",
      *result.priority, result.highest, pod.priority_class.empty() ? "-" : pod.priority_class);
  result.priority = result.highest;
  return result;
}

}  // namespace xsched::kubernetes
