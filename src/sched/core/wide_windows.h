// The queues of all devices with windows that act on other devices as well (windows.h), as far as these
// devices need to know: the most urgent one of all, and of each process, tenant and job. To look one up costs
// the same however many there are, because one user may have thousands.
#pragma once

#include <cstdint>

#include "base/array.h"
#include "sched/core/claims.h"
#include "sched/core/queue_record.h"
#include "sched/core/turns.h"

namespace xsched::sched {

class WideWindows {
 public:
  // From DeviceRecord::wide_windows of all devices. If memory runs out, those that are left out act on their
  // own devices only.
  void Collect(const PolicySetting& setting, const Array<DeviceRecord*>& devices, const Turns& turns);

  // Not valid: there is none.
  const Claim& any() const { return any_; }
  const Claim& OfProcess(ProcessId process) const { return Of(by_process_, static_cast<uint64_t>(process)); }
  const Claim& OfTenant(TenantId tenant) const { return Of(by_tenant_, static_cast<uint64_t>(tenant)); }
  const Claim& OfJob(JobId job) const { return Of(by_job_, static_cast<uint64_t>(job)); }

 private:
  struct Place {
    uint64_t key;
    size_t claim;  // its index
  };
  void Add(Array<Place>& places, uint64_t key) const;
  void KeepMostUrgent(const PolicySetting& setting, Array<Place>& places) const;
  const Claim& Of(const Array<Place>& places, uint64_t key) const;

  Claim any_;
  Claim none_;
  Array<Claim> claims_;
  // One place for each key, in order.
  Array<Place> by_process_;
  Array<Place> by_tenant_;
  Array<Place> by_job_;
};

}  // namespace xsched::sched
