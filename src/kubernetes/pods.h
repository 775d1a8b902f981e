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

// Adds static pods, by the uid that they have on this node: their mirror pods have another one. The API
// server says what a pod may have. The kubelet only confirms that a pod of this name runs on its node: it
// lists no imitation of a mirror pod. `listed`: the names of the kubelet's pods.
void AddStaticPods(Pods& pods, const std::set<std::string>& listed);
bool HasMirrorPods(const Pods& pods);

struct PodPriority {
  std::optional<int> priority;  // nullopt: nobody has said anything
  int highest = 0;              // that its programs may have
  std::string problem;          // what was not understood or lowered; empty: nothing
};
// `most`: never more than that.
PodPriority PriorityOf(const Pod& pod, const ClassPriorities& classes, int most);

}  // namespace xsched::kubernetes
