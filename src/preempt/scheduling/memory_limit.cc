#include "preempt/scheduling/memory_limit.h"

#include <sched.h>

#include <algorithm>

#include "base/log.h"

namespace xsched::preempt {

bool MemoryLimit::Open(const char* path, uint64_t limit) {
  of_program_.store(limit != ipc::kNoMemoryLimit);
  if (path != nullptr) {
    Result<> shared = account_.Open(path, limit);
    opened_.store(static_cast<bool>(shared), std::memory_order_release);
    if (shared) return true;
    XSCHED_WARN("%s: %s; this process has the limit for itself", path, shared.error().text());
  }
  Result<> own = account_.Open(nullptr, limit);
  if (!own) XSCHED_WARN("%s; memory has no limit", own.error().text());
  opened_.store(static_cast<bool>(own), std::memory_order_release);
  return opened();
}

// A forked child may not use its parent's devices, so it has nothing of the parent's memory.
bool MemoryLimit::TakeOwnSlot() {
  if (!has_parents_slot_.load()) return true;
  Result<> taken = account_.Reopen();
  has_parents_slot_.store(!taken);
  if (!taken) XSCHED_WARN("%s; memory has no limit", taken.error().text());
  return static_cast<bool>(taken);
}

// ---- the tenant's account ----

void MemoryLimit::JoinTenant(int memfd, uint32_t slot) {
  if (gave_up_.load()) return;
  Result<> joined = tenant_.Join(memfd, slot);
  if (!joined) XSCHED_WARN("%s; the tenant's memory has no limit for this process", joined.error().text());
  joined_ = static_cast<bool>(joined);
  if (joined_) ReportAll();
}

void MemoryLimit::Welcomed() { no_tenant_.store(!joined_); }

void MemoryLimit::LeaveTenant() {
  tenant_.Leave();
  joined_ = false;
}

// ---- taking and giving back ----

bool MemoryLimit::TryTake(int device, uint64_t bytes) {
  if (!account_.Take(device, bytes)) return false;
  Report(device);
  if (tenant_.Together(account_.device(device)) <= tenant_.limit()) return true;
  GiveBack(device, bytes);
  return false;
}

bool MemoryLimit::Take(int device, uint64_t bytes) {
  if (bytes > limit()) return false;
  if (TryTake(device, bytes)) [[likely]]
    return true;
  // Somebody else of the tenant may have asked for too much at the same moment.
  for (int attempts = 0; attempts < 3; ++attempts) {
    sched_yield();
    if (TryTake(device, bytes)) return true;
  }
  return false;
}

uint64_t MemoryLimit::limit() const { return std::min(account_.limit(), tenant_.limit()); }

uint64_t MemoryLimit::Left(int device) {
  account_.DropEnded();
  const auto left = [](uint64_t limit, uint64_t used) { return used < limit ? limit - used : 0; };
  return std::min(left(account_.limit(), account_.Together(device)),
                  left(tenant_.limit(), tenant_.Together(account_.device(device))));
}

void MemoryLimit::Report(int device) {
  const XDevice its = account_.device(device);
  tenant_.Update(its, account_.OwnWord(device));
  const uint64_t most = limit();
  memory_.ReportMemory(device, its, most == ipc::kNoMemoryLimit ? 0 : most, account_.Own(device));
}

void MemoryLimit::ReportAll() {
  if (!opened() || has_parents_slot_.load()) return;
  for (int device = 0; device < ipc::kMaxMemoryDevices && account_.device(device) != 0; ++device)
    Report(device);
}

}  // namespace xsched::preempt
