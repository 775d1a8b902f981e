// What the API server says of pods, and which priority follows from it. Pure: texts in, pods out.
//
// A pod's own words are no right. Its annotations and variables are written by whoever makes the pod, so they
// count up to what its PriorityClass allows. PriorityClasses belong to the cluster's administrators, who say
// by a ResourceQuota which namespaces may use them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace xsched::kubernetes {

// Of pods, and of PriorityClasses.
inline constexpr const char* kPriorityAnnotation = "xsched.org/priority";
// Of a mirror pod: the uid that the static pod has on its node. The kubelet writes it, but so may whoever
// makes a pod.
inline constexpr const char* kMirrorAnnotation = "kubernetes.io/config.mirror";
// HAMi's, of containers: 0 is urgent, all else is not.
inline constexpr const char* kHamiPriority = "CUDA_TASK_PRIORITY";

// What a pod may claim whose PriorityClass says nothing: what everybody has.
inline constexpr int kPriorityWithoutRight = 0;

struct Pod {
  std::string name;            // "namespace/name"
  std::string priority_class;  // its name; empty: none
  std::string asked;           // its annotation; empty: none
  std::string hami_priority;   // the first that a container has; empty: none
  std::string mirrored = {};   // it is the mirror pod of the static pod with this uid; empty: it is none
  std::vector<std::string> claims = {};  // the names of its ResourceClaims, in its namespace
  std::optional<int> claimed = {};       // what these ask for. It is not in the list of pods
};

using Pods = std::map<std::string, Pod>;                     // by uid
using ClassPriorities = std::map<std::string, std::string>;  // the annotations of PriorityClasses, by name

// The lists of the API, as JSON. Elements that are not as they should be are left out; a text that is no such
// list is an error.
Result<Pods> ReadPods(std::string_view text);
Result<ClassPriorities> ReadPriorityClasses(std::string_view text);

// By the uid that static pods have on this node: the names of their mirror pods.
using MirrorNames = std::map<std::string, std::string>;

bool HasMirrorPods(const Pods& pods);
// The mirror pods that the kubelet confirms: it lists no imitation of one. `listed`: the names of its pods.
// Where several claim one static pod, none counts.
MirrorNames ConfirmedMirrors(const Pods& pods, const std::set<std::string>& listed);
// Adds static pods by the uid that they have on this node: their mirror pods have another one. The API server
// says what they may have. Those without their mirror pod are taken out of `confirmed`.
void AddStaticPods(Pods& pods, MirrorNames& confirmed);

struct PodPriority {
  std::optional<int> priority;  // nullopt: nobody has said anything
  int highest = 0;              // that its programs may have
  std::string problem;          // what was not understood or lowered; empty: nothing
};
// `most`: never more than that.
PodPriority PriorityOf(const Pod& pod, const ClassPriorities& classes, int most);

}  // namespace xsched::kubernetes
