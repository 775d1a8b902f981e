#include "server/tenants/tenant_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/system_calls.h"

namespace xsched::server {

// A client gets the descriptor, and must not be able to take the pages from under the server, nor to keep
// other processes of its tenant from writing.
Result<std::shared_ptr<TenantMemory>> TenantMemory::Create(uint64_t limit) {
  UniqueFd memfd(MemfdCreate("xsched-tenant-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) return Error::FromErrno(errno, "cannot make an account of memory");
  if (ftruncate(memfd.get(), sizeof(ipc::TenantMemoryTable)) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Error::FromErrno(errno, "cannot size an account of memory");
  void* memory =
      mmap(nullptr, sizeof(ipc::TenantMemoryTable), PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (memory == MAP_FAILED) return Error::FromErrno(errno, "cannot map an account of memory");
  auto* table = static_cast<ipc::TenantMemoryTable*>(memory);
  table->version = ipc::TenantMemoryTable::kVersion;
  auto account = std::make_shared<TenantMemory>(std::move(memfd), table);
  account->SetLimit(limit);
  return account;
}

// Its pages are mostly charged to the server. A process that was of the tenant may keep the memory: what it
// writes there from now on is charged to the process.
TenantMemory::~TenantMemory() {
  munmap(table_, sizeof *table_);
  fallocate(memfd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sizeof *table_);
}

void TenantMemory::SetLimit(uint64_t limit) {
  table_->limit.store(limit == 0 ? ipc::kNoMemoryLimit : limit, std::memory_order_relaxed);
}

uint64_t TenantMemory::MostUsed() const {
  uint64_t most = 0;
  for (int device = 0; device < ipc::kMaxMemoryDevices; ++device)
    most = std::max(most, table_->Together(device));
  return most;
}

// The lowest ones, because each allocation reads all up to the last one in use.
std::optional<uint32_t> TenantMemory::TakeSlot() {
  uint32_t number = 0;
  while (number < taken_.size() && taken_[number]) ++number;
  if (number == taken_.size()) return std::nullopt;
  taken_[number] = true;
  ipc::TenantMemorySlot& slot = table_->slots[number];
  for (std::atomic<uint64_t>& used : slot.used) used.store(0);
  slot.in_use.store(1, std::memory_order_release);
  SayHowManyAreInUse();
  return number;
}

void TenantMemory::SilenceSlot(uint32_t number) {
  table_->slots[number].in_use.store(0, std::memory_order_release);
}

// It stays as the owner has left it: the owner may not know yet that it was of another tenant.
void TenantMemory::ReviveSlot(uint32_t number) {
  table_->slots[number].in_use.store(1, std::memory_order_release);
}

void TenantMemory::FreeSlot(uint32_t number) {
  SilenceSlot(number);
  taken_[number] = false;
  SayHowManyAreInUse();
}

void TenantMemory::SayHowManyAreInUse() {
  uint32_t end = ipc::kMaxMemoryProcesses;
  while (end > 0 && !taken_[end - 1]) --end;
  table_->slots_in_use.store(end, std::memory_order_release);
}

}  // namespace xsched::server
