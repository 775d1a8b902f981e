// The server's end of a tenant's account of memory (ipc/tenant_memory.h): it makes the account, sets the
// limit, and gives each process of the tenant a slot. It reads what is shown of it, and believes none of it.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "ipc/tenant_memory.h"

namespace xsched::server {

class TenantMemory {
 public:
  // `limit`: 0 is none.
  static Result<std::shared_ptr<TenantMemory>> Create(uint64_t limit);
  TenantMemory(UniqueFd memfd, ipc::TenantMemoryTable* table) : memfd_(std::move(memfd)), table_(table) {}
  ~TenantMemory();
  TenantMemory(const TenantMemory&) = delete;
  TenantMemory& operator=(const TenantMemory&) = delete;

  void SetLimit(uint64_t limit);
  // Bytes of the device of which its processes have most.
  uint64_t MostUsed() const;
  int memfd() const { return memfd_.get(); }

  // Nullopt: all are taken.
  std::optional<uint32_t> TakeSlot();
  // What its owner had counts no more. The owner may still write there: the slot is not given to anybody
  // else.
  void SilenceSlot(uint32_t slot);
  // The process that had it belongs to this tenant again, and counts as before.
  void ReviveSlot(uint32_t slot);
  // REQUIRES: the owner has left.
  void FreeSlot(uint32_t slot);

 private:
  void SayHowManyAreInUse();

  UniqueFd memfd_;
  ipc::TenantMemoryTable* table_;
  std::bitset<ipc::kMaxMemoryProcesses> taken_;
};

// A process's slot in an account. It is given back when this ends, which is when the process's connection
// does.
class MemorySlot {
 public:
  MemorySlot(std::shared_ptr<TenantMemory> account, uint32_t number)
      : account_(std::move(account)), number_(number) {}
  MemorySlot(MemorySlot&&) = default;
  MemorySlot& operator=(MemorySlot&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~MemorySlot() {
    if (account_ != nullptr) account_->FreeSlot(number_);
  }
  MemorySlot(const MemorySlot&) = delete;
  MemorySlot& operator=(const MemorySlot&) = delete;

  int memfd() const { return account_->memfd(); }
  uint32_t number() const { return number_; }
  // The process is told to use another one; this one again.
  void Silence() { account_->SilenceSlot(number_); }
  void Revive() { account_->ReviveSlot(number_); }
  bool IsIn(const std::shared_ptr<TenantMemory>& account) const { return account_ == account; }

 private:
  std::shared_ptr<TenantMemory> account_;
  uint32_t number_;
};

}  // namespace xsched::server
