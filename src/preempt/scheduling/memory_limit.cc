#include "preempt/scheduling/memory_limit.h"

#include "base/log.h"

namespace xsched::preempt {

bool MemoryLimit::Open(const char* path, uint64_t limit) {
  if (path != nullptr) {
    Result<> shared = account_.Open(path, limit);
    if (shared) return true;
    XSCHED_WARN("%s: %s; this process has the limit for itself", path, shared.error().text());
  }
  Result<> own = account_.Open(nullptr, limit);
  if (!own) XSCHED_WARN("%s; memory has no limit", own.error().text());
  return static_cast<bool>(own);
}

// A forked child may not use its parent's devices, so it has nothing of the parent's memory.
bool MemoryLimit::LeaveParentsSlot() {
  if (!has_parents_slot_.exchange(false)) return true;
  Result<> taken = account_.Reopen();
  if (!taken) XSCHED_WARN("%s; memory has no limit", taken.error().text());
  return static_cast<bool>(taken);
}

void MemoryLimit::ReportAll() {
  for (int device = 0; device < ipc::kMaxMemoryDevices && account_.device(device) != 0; ++device)
    Report(device);
}

}  // namespace xsched::preempt
