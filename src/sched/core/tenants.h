// Which tenant a process belongs to, and what is remembered of a tenant on one device. A tenant on a device
// is to its processes what a process is to its queues.
#pragma once

#include "base/array.h"
#include "sched/core/chosen_queues.h"
#include "sched/core/policy_setting.h"
#include "sched/core/process_slices.h"

namespace xsched::sched {

// One tenant on one device.
struct TenantRecord {
  TenantId id{};
  DeviceRecord* device = nullptr;
  size_t processes = 0;
  TimePoint empty_since{};  // valid without processes
  TenantShare share;
  PolicyState policy_states[kMostPolicies];

  // As in ProcessRecord, for policies that decide about tenants.
  PolicyState view_states[kMostPolicies];
  Hints hints;
  bool has_hints = false;  // a policy in use decides about tenants
  TimePoint finished_at{};
  Received received_by_others;
  Received received;
  QueueView* view = nullptr;
  ChosenQueues chosen;
};

// The tenants of processes and their shares, on all devices. If memory runs out, a process is of no known
// tenant, and a tenant has the share of those of which nothing is known.
class Tenants {
 public:
  TenantId Of(ProcessId process) const;
  TenantShare ShareOf(TenantId tenant) const;
  // 0: none is known.
  void Set(ProcessId process, TenantId tenant);
  void SetShare(TenantId tenant, const TenantShare& share);

 private:
  struct OfProcess {
    ProcessId process;
    TenantId tenant;
  };
  struct OfTenant {
    TenantId tenant;
    TenantShare share;
  };

  Array<OfProcess> processes_;  // in order of their ids
  Array<OfTenant> shares_;      // likewise; only those that are not the default
};

// The process, which has no tenant on its device, gets this one. False: out of memory.
bool JoinTenant(ProcessRecord& process, TenantId tenant, const TenantShare& share);
// The process is about to be forgotten, or to join another tenant. REQUIRES: it has no active queue.
void LeaveTenant(ProcessRecord& process, TimePoint now);
// The process, which may have active queues, changes to another tenant. What it has received stays where it
// was. False: out of memory; nothing has changed.
bool ChangeTenant(ProcessRecord& process, TenantId tenant, const TenantShare& share);

// A tenant whose programs are short must not begin anew with each of them: neither its limit, nor what it
// owes. So it is kept for a few seconds when its last process has gone. Forgets the tenants of the device for
// which that time is over, or all without processes, and returns when to call it again.
TimePoint ForgetFormerTenants(DeviceRecord& device, TimePoint now);
void ForgetAllFormerTenants(DeviceRecord& device);

inline TenantId TenantOf(const ProcessRecord& process) {
  return process.tenant == nullptr ? TenantId{} : process.tenant->id;
}

}  // namespace xsched::sched
