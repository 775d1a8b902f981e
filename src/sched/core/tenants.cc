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

// Tenants without processes on each device. Those that left first are forgotten first.
constexpr size_t kMostFormer = 64;

size_t IndexOf(const Array<TenantRecord*>& tenants, TenantId id) {
  const auto is = [id](const TenantRecord* tenant) { return tenant->id == id; };
  return static_cast<size_t>(std::find_if(tenants.begin(), tenants.end(), is) - tenants.begin());
}

TenantRecord* FindOrAdd(DeviceRecord& device, TenantId id, const TenantShare& share) {
  const size_t at = IndexOf(device.tenants, id);
  if (at < device.tenants.size()) return device.tenants[at];
  if (!device.tenants.Reserve(device.tenants.size() + 1)) return nullptr;
  const size_t former = IndexOf(device.former_tenants, id);
  TenantRecord* tenant = nullptr;
  if (former < device.former_tenants.size()) {
    tenant = device.former_tenants[former];
    device.former_tenants.Remove(former);
  } else {
    tenant = new (std::nothrow) TenantRecord;
    if (tenant == nullptr) return nullptr;
    tenant->id = id;
    tenant->device = &device;
  }
  tenant->share = share;
  [[maybe_unused]] bool pushed = device.tenants.Push(tenant);
  return tenant;
}

void ForgetFirst(Array<TenantRecord*>& former) {
  delete former[0];
  former.Remove(0);
}

// It has one process less.
void Drop(TenantRecord& tenant, TimePoint now) {
  if (--tenant.processes != 0) return;
  DeviceRecord& device = *tenant.device;
  device.tenants.Remove(IndexOf(device.tenants, tenant.id));
  tenant.empty_since = now;
  if (device.former_tenants.size() == kMostFormer) ForgetFirst(device.former_tenants);
  if (!device.former_tenants.Push(&tenant)) delete &tenant;
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

void LeaveTenant(ProcessRecord& process, TimePoint now) {
  if (process.tenant != nullptr) Drop(*process.tenant, now);
  process.tenant = nullptr;
}

bool ChangeTenant(ProcessRecord& process, TenantId id, const TenantShare& share) {
  TenantRecord* former = process.tenant;
  if (former == nullptr || former->id == id) return true;
  Received active;
  for (const QueueRecord* queue : process.device->active) {
    if (queue->process == &process) active += ReceivedBy(*queue);
  }
  if (!JoinTenant(process, id, share)) return false;
  former->received_by_others += active;
  process.tenant->received_by_others -= active;
  former->chosen.Leave(process.chosen);
  process.tenant->chosen.Join(process.chosen);
  Drop(*former, process.device->accounted_at);  // the time of the last decision is near enough
  return true;
}

TimePoint ForgetFormerTenants(DeviceRecord& device, TimePoint now) {
  Array<TenantRecord*>& former = device.former_tenants;
  while (!former.empty() && now >= former[0]->empty_since + kKeepAccount) ForgetFirst(former);
  return former.empty() ? kNever : former[0]->empty_since + kKeepAccount;
}

void ForgetAllFormerTenants(DeviceRecord& device) {
  while (!device.former_tenants.empty()) ForgetFirst(device.former_tenants);
}

}  // namespace xsched::sched
