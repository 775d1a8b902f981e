// Earliest eligible virtual deadline first: one queue runs at a time, and each ready process gets time in
// proportion to its weight; within a process, each ready queue in proportion to its own. On a server with
// tenants (docs/tenants.md), each tenant has time in proportion to its weight, and its processes share that.
//
// For programs or tenants that share a device, each by a weight as that of a control group (cpu.weight),
// where some of them sleep and wake. A process's weight is the highest of its queues', also of those that are
// idle: it does not change as queues come and go.
//
// Time is divided in a tree: the device's among tenants, a tenant's among its processes, and a process's
// among its queues. In each of these nodes, a child's lag is what it should have received until now, less
// what it has received. A child with a lag of 0 or more is eligible: nobody may run ahead. It asks for one
// time slice after the other. Each is due when it would be finished if the child had its share all the time.
// Of the eligible ones, the one whose time slice is due first runs, to the slice's end. Only one that has
// just become ready may run before that, by the same rule.
//
// So no lag gets larger than one time slice. A child that sleeps keeps what it is owed, up to one time
// slice: it can neither save up credit, nor lose what it should have had. What it owes is paid when the
// others have received as much, whether it sleeps or waits.
//
// It fails where latency counts more than shares: a queue that has used up its share waits, even if it is
// urgent. On devices that do not divide their time by themselves, queues that could use the device together
// run one after another.
#include <algorithm>

#include "sched/core/proportional_share.h"

namespace xsched::sched::eevdf {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyEarliestEligibleVirtualDeadlineFirst,
    .name = "EEVDF",
    .summary =
        "earliest eligible virtual deadline first: shares by weight, of tenants, their processes and queues",
    .hints = {.weight = true, .timeslice = true},
    .sees_processes = true,
    .charges_overruns = true,
    .keeps_busy = true,
};

constexpr double kInstant = 1e-9;  // of seconds: what is left of a time slice by rounding
constexpr double kNanosecondsPerSecond = 1e9;

// The device, a tenant, a process or a queue: each is the parent of the next. Where no tenants are known, all
// processes are of one. Virtual times are in seconds per unit of weight.
struct Node {
  // As a child, as of the last decision in which its parent had it.
  double virtual_time;  // what it had received
  double deadline;      // the virtual time at which its time slice ends
  double owed;          // its lag, in seconds
  double share;         // its part of all weights
  Duration counted;     // the service that virtual_time counts
  Weight weight;
  uint32_t seen;       // the number of that decision; 0: there was none
  const Node* parent;  // which it was
  bool chosen;

  // As a parent.
  double clock;  // the virtual time of a child whose lag is 0
  uint32_t decisions;

  // Valid during a decision.
  bool was_idle;  // none of its queues was ready before
  bool joined;    // its parent did not have it in the decision before
  Weight weight_now;
  Duration service;
  Node* first;  // child
  Node* next;   // child of the same parent
  QueueView* queue;
};

struct Sum {
  double weights = 0;
  double weighted = 0;  // virtual times, from `base`
  double base;

  void Add(const Node& child) {
    weights += child.weight;
    weighted += child.weight * (child.virtual_time - base);
  }
  double Mean() const { return weights > 0 ? base + weighted / weights : base; }
};

template <typename Do>
void ForEachChild(const Node& parent, Do&& act) {
  for (Node* child = parent.first; child != nullptr; child = child->next) act(*child);
}

double SliceOf(const Node& child, Duration timeslice) { return InSeconds(timeslice) / child.weight; }

// A child that its parent had in the decision before.
void GoOn(Node& child) {
  if (child.weight != child.weight_now) {
    // What it is owed, and what is left of its time slice, stay the same in seconds.
    const double factor = static_cast<double>(child.weight) / child.weight_now;
    const double left = (child.deadline - child.virtual_time) * factor;
    child.virtual_time += child.owed * (1.0 / child.weight - 1.0 / child.weight_now);
    child.deadline = child.virtual_time + left;
    child.weight = child.weight_now;
  }
  child.virtual_time += InSeconds(child.service - child.counted) / child.weight;
  child.joined = false;
}

// A child that is new, that was idle, or that another policy of a chain has held. `others`: those which are
// there already.
void Join(Node& child, const Sum& others, Duration timeslice) {
  const double clock = others.Mean();
  const bool is_known = child.seen != 0;
  // Only it can have run between that decision and its end.
  const double since = is_known ? InSeconds(child.service - child.counted) : 0;
  const double most = InSeconds(timeslice);
  // What it overran after a hold may be many time slices. Time that it had alone is no debt.
  const double debt = child.owed - (child.chosen ? 0 : since * (1 - child.share));
  const double least = is_known ? std::min(-most, debt) : 0;
  const double owed = is_known ? std::clamp(child.owed - since * (1 - child.share), least, most) : 0;
  const double before =
      child.virtual_time + child.owed * (1.0 / std::max(child.weight, 1) - 1.0 / child.weight_now);
  child.weight = child.weight_now;
  // With the child, the clock is nearer to it.
  const double closer = others.weights > 0 ? 1 + child.weight / others.weights : 1;
  if (owed < 0 && child.was_idle) {
    // The clock goes on while it is idle. When it gets to where the child was, the debt is paid.
    const double furthest = std::max(most, -debt * closer) / child.weight;
    child.virtual_time = std::clamp(before + since / child.weight, clock, clock + furthest);
  } else {
    child.virtual_time = clock - owed / child.weight * closer;
  }
  child.deadline = child.virtual_time + SliceOf(child, timeslice);
  child.chosen = false;
  child.joined = true;
}

// Brings what the parent's children have received, and the lag of each, up to date.
void Update(Node& parent, Duration timeslice) {
  const uint32_t before = parent.decisions++;
  Sum sum{.base = parent.clock};
  auto goes_on = [before](const Node& child) { return child.seen != 0 && child.seen == before; };
  ForEachChild(parent, [&](Node& child) {
    if (!goes_on(child)) return;
    GoOn(child);
    // The user may have made time slices shorter.
    child.deadline = std::min(child.deadline, child.virtual_time + SliceOf(child, timeslice));
    sum.Add(child);
  });
  ForEachChild(parent, [&](Node& child) {
    if (goes_on(child)) return;
    Join(child, sum, timeslice);
    sum.Add(child);
  });
  parent.clock = sum.Mean();
  ForEachChild(parent, [&](Node& child) {
    child.owed = child.weight * (parent.clock - child.virtual_time);
    child.share = child.weight / sum.weights;
    child.counted = child.service;
    child.seen = parent.decisions;
    if (child.first != nullptr) Update(child, timeslice);
  });
}

bool IsBefore(const Node& child, const Node* other) {
  return child.owed >= -kInstant && (other == nullptr || child.deadline < other->deadline);
}

// The child that runs next.
Node& Choose(Node& parent, Duration timeslice) {
  Node* best = nullptr;
  Node* lowest = parent.first;
  ForEachChild(parent, [&](Node& child) {
    if (child.virtual_time < lowest->virtual_time) lowest = &child;
    if (!child.chosen) return;
    if ((child.deadline - child.virtual_time) * child.weight > kInstant) {
      best = &child;
    } else {
      child.deadline = child.virtual_time + SliceOf(child, timeslice);
    }
  });
  const bool goes_on = best != nullptr;
  ForEachChild(parent, [&](Node& child) {
    if ((child.joined || !goes_on) && IsBefore(child, best)) best = &child;
  });
  if (best == nullptr) best = lowest;  // the mean of the virtual times may be rounded below all of them
  ForEachChild(parent, [best](Node& child) { child.chosen = &child == best; });
  return *best;
}

class EarliestEligible final : public PolicyWithState<Node, Node, Node> {
 public:
  using PolicyWithState::PolicyWithState;

  TimePoint Decide(const DeviceView& device) const override {
    Node& root = MakeTree(device);
    Update(root, device.timeslice);
    TimePoint next = kNever;
    Node* node = &root;
    while (node->first != nullptr) {
      const bool alone = node->first->next == nullptr;
      node = &Choose(*node, device.timeslice);
      if (alone) continue;
      const double left = (node->deadline - node->virtual_time) * node->weight * kNanosecondsPerSecond;
      next = std::min(next, device.now + std::max(Duration(static_cast<int64_t>(left)), kShortestTurn));
    }
    node->queue->run = true;
    return next;
  }

  bool CanHold(const Hints&, const Hints&) const override { return true; }

  // Slices are those of processes, and a tenant may have any number of these.
  Division Divide(std::span<ProcessView> processes) const override {
    auto is_of_other = [&](const ProcessView& process) { return process.tenant != processes.front().tenant; };
    if (std::any_of(processes.begin(), processes.end(), is_of_other)) return OnlyTheRunningOne(processes);
    auto weight = [](const ProcessView& process) -> double { return process.weight; };
    return DivideInProportion(processes, weight);
  }

 private:
  static Node& TenantStateOf(const QueueView& queue) { return queue.tenant_state->As<Node>(); }

  static void Attach(Node& child, Node& parent, Weight weight, Duration service) {
    // A process that changed its tenant. Virtual times and numbers of decisions are those of a parent.
    if (child.parent != &parent) child.seen = 0;
    child.parent = &parent;
    child.weight_now = std::clamp(weight, WEIGHT_MIN, WEIGHT_MAX);
    child.service = service;
    child.next = parent.first;
    parent.first = &child;
  }

  static Node& MakeTree(const DeviceView& device) {
    Node& root = StateOf(device);
    root.first = nullptr;
    for (const QueueView& queue : device.ready)
      ProcessStateOf(queue).first = TenantStateOf(queue).first = nullptr;
    // From the last one, so that children are in the order of their queues' ids.
    for (size_t i = device.ready.size(); i-- > 0;) {
      QueueView& queue = device.ready[i];
      queue.run = false;
      Node& tenant = TenantStateOf(queue);
      Node& process = ProcessStateOf(queue);
      Node& leaf = StateOf(queue);
      const bool is_first_of_tenant = tenant.first == nullptr;
      const bool is_first = process.first == nullptr;
      if (is_first_of_tenant) Attach(tenant, root, queue.tenant_weight, queue.tenant_service);
      if (is_first) Attach(process, tenant, queue.process_weight, queue.process_service);
      tenant.was_idle = queue.newly_ready && (is_first_of_tenant || tenant.was_idle);
      process.was_idle = queue.newly_ready && (is_first || process.was_idle);
      Attach(leaf, process, queue.hints.weight, queue.service);
      leaf.was_idle = queue.newly_ready;
      leaf.first = nullptr;
      leaf.queue = &queue;
    }
    return root;
  }
};

constinit const EarliestEligible policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::eevdf
