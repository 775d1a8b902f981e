#include "ipc/tenant_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/sealed_memory.h"

namespace xsched::ipc {
namespace {

// In front of the table: which slot is ours. Nobody else can write it.
constexpr size_t kFrontSize = size_t{1} << 16;  // whole pages, of any size that Linux has

constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

int TenantMemoryTable::Device(XDevice device) {
  for (int i = 0; i < kMaxMemoryDevices; ++i) {
    XDevice known = devices[i].load(std::memory_order_acquire);
    if (known == 0 && devices[i].compare_exchange_strong(known, device)) return i;
    if (known == device) return i;
  }
  return -1;
}

uint64_t TenantMemoryTable::Together(int device) const {
  uint64_t sum = 0;
  const uint32_t count = slots_in_use.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < kMaxMemoryProcesses; ++i) {
    if (slots[i].in_use.load(std::memory_order_acquire) != 0) sum += slots[i].used[device].load();
  }
  return sum;
}

// One range of addresses has both parts, and is kept for good: see KeepOnlyAddresses.
Result<> TenantMemoryShare::Join(int memfd, uint32_t slot) {
  Result<> checked = CheckSealedMemory(memfd, sizeof(TenantMemoryTable), "the tenant's account of memory");
  if (!checked) return checked;
  if (slot >= kMaxMemoryProcesses) return Error::Make("the tenant's account of memory has no slot %u", slot);
  if (joins_ == kMostJoins) return Error::Make("the tenant's account of memory has changed too often");
  void* range =
      mmap(nullptr, kFrontSize + sizeof(TenantMemoryTable), PROT_READ | PROT_WRITE, kNothing, -1, 0);
  if (range == MAP_FAILED) return Error::FromErrno(errno, "cannot map the tenant's account of memory");
  void* place = static_cast<char*>(range) + kFrontSize;
  auto* joined = static_cast<Joined*>(range);
  *joined = {static_cast<TenantMemoryTable*>(place), slot};
  if (mmap(place, sizeof(TenantMemoryTable), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd, 0) ==
      MAP_FAILED) {
    const int error = errno;
    munmap(range, kFrontSize + sizeof(TenantMemoryTable));
    return Error::FromErrno(error, "cannot map the tenant's account of memory");
  }
  if (joined->table->version != TenantMemoryTable::kVersion) {
    munmap(range, kFrontSize + sizeof(TenantMemoryTable));
    return Error::Make("the tenant's account of memory is of another version");
  }
  ++joins_;
  if (Joined* former = joined_.exchange(joined)) KeepOnlyAddresses(former);
  return {};
}

void TenantMemoryShare::Leave() {
  if (Joined* former = joined_.exchange(nullptr)) KeepOnlyAddresses(former);
}

// A thread may still be about to write there: it then writes memory that nobody reads, and finds the new
// account afterwards (Update). That costs a process 150 KiB of addresses for each time that its server has
// gone.
//
// The system call and not mmap(), which ThreadSanitizer takes for a write to the memory. It replaces the
// pages, and whoever writes meanwhile writes to the old ones or to the new ones.
void TenantMemoryShare::KeepOnlyAddresses(Joined* former) {
  syscall(SYS_mmap, former->table, sizeof(TenantMemoryTable), PROT_READ | PROT_WRITE, kNothing | MAP_FIXED,
          -1, 0);
}

// Several threads may be here, and the account may change meanwhile. Whoever writes last has then found that
// nothing has changed since it looked, so it has written what is true.
void TenantMemoryShare::Update(XDevice device, const std::atomic<uint64_t>& own) {
  for (;;) {
    const Joined* joined = joined_.load();
    if (joined == nullptr) return;
    const int number = joined->table->Device(device);
    if (number < 0) return;
    const uint64_t has = own.load();
    joined->table->slots[joined->slot].used[number].store(has);
    if (own.load() == has && joined_.load() == joined) return;
  }
}

uint64_t TenantMemoryShare::limit() const {
  const Joined* joined = joined_.load(std::memory_order_acquire);
  if (joined == nullptr) return kNoMemoryLimit;
  const uint64_t limit = joined->table->limit.load(std::memory_order_relaxed);
  return limit == 0 ? kNoMemoryLimit : limit;
}

uint64_t TenantMemoryShare::Together(XDevice device) const {
  const Joined* joined = joined_.load(std::memory_order_acquire);
  const int number = joined == nullptr ? -1 : joined->table->Device(device);
  return number < 0 ? 0 : joined->table->Together(number);
}

}  // namespace xsched::ipc
