#include "sched/core/tenants.h"

#include <algorithm>
#include <new>

#include "sched/core/accounting.h"
#include "sched/core/queue_record.h"

namespace xsched::sched {
namespace {

// The index of `id` in entries that are ordered by their first member, or where it would be.
template <typename Entry, typename Id>
size_t PlaceIn(const Array<Entry>& entries, Id Entry::*key, Id id) {
  auto before = [key](const Entry& entry, Id wanted) { return entry.*key < wanted; };
  return static_cast<size_t>(std::lower_bound(entries.begin(), entries.end(), id, before) - entries.begin());
}

// Sets the entry, or removes it if it `is_default`. If memory runs out, it stays the default.
template <typename Entry, typename Id>
void SetIn(Array<Entry>& entries, Id Entry::*key, const Entry& entry, bool is_default) {
  const size_t at = PlaceIn(entries, key, entry.*key);
  const bool known = at < entries.size() && entries[at].*key == entry.*key;
  if (known && is_default) {
    entries.Remove(at);
  } else if (known) {
    entries[at] = entry;
  } else if (!is_default && entries.Reserve(entries.size() + 1)) {
    entries.Insert(at, entry);
  }
}

TenantRecord* FindOrAdd(DeviceRecord& device, TenantId id, const TenantShare& share) {
  for (TenantRecord* tenant : device.tenants) {
    if (tenant->id == id) return tenant;
  }
  auto* tenant = new (std::nothrow) TenantRecord;
  if (tenant == nullptr) return nullptr;
  tenant->id = id;
  tenant->device = &device;
  tenant->share = share;
  if (device.tenants.Push(tenant)) return tenant;
  delete tenant;
  return nullptr;
}

// It has one process less.
void Drop(TenantRecord& tenant) {
  if (--tenant.processes != 0) return;
  Array<TenantRecord*>& all = tenant.device->tenants;
  all.Remove(static_cast<size_t>(std::find(all.begin(), all.end(), &tenant) - all.begin()));
  delete &tenant;
}

}  // namespace

TenantId Tenants::Of(ProcessId process) const {
  const size_t at = PlaceIn(processes_, &OfProcess::process, process);
  return at < processes_.size() && processes_[at].process == process ? processes_[at].tenant : TenantId{};
}

TenantShare Tenants::ShareOf(TenantId tenant) const {
  const size_t at = PlaceIn(shares_, &OfTenant::tenant, tenant);
  return at < shares_.size() && shares_[at].tenant == tenant ? shares_[at].share : TenantShare{};
}

void Tenants::Set(ProcessId process, TenantId tenant) {
  SetIn(processes_, &OfProcess::process, {process, tenant}, tenant == TenantId{});
}

void Tenants::SetShare(TenantId tenant, const TenantShare& share) {
  SetIn(shares_, &OfTenant::tenant, {tenant, share}, share == TenantShare{});
}

bool JoinTenant(ProcessRecord& process, TenantId id, const TenantShare& share) {
  TenantRecord* tenant = FindOrAdd(*process.device, id, share);
  if (tenant == nullptr) return false;
  ++tenant->processes;
  process.tenant = tenant;
  return true;
}

void LeaveTenant(ProcessRecord& process) {
  if (process.tenant != nullptr) Drop(*process.tenant);
  process.tenant = nullptr;
}

bool ChangeTenant(ProcessRecord& process, TenantId id, const TenantShare& share) {
  TenantRecord* former = process.tenant;
  if (former == nullptr || former->id == id) return true;
  Duration active{};
  for (const QueueRecord* queue : process.device->active) {
    if (queue->process == &process) active += ServiceForProcess(*queue);
  }
  if (!JoinTenant(process, id, share)) return false;
  former->service_of_others += active;
  process.tenant->service_of_others -= active;
  former->chosen.Leave(process.chosen);
  process.tenant->chosen.Join(process.chosen);
  Drop(*former);
  return true;
}

}  // namespace xsched::sched
