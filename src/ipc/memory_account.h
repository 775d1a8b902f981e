// The memory that the processes of one program have taken from devices, and how much they may take: one file
// that all of them map (xsched run --memory). Each process has a slot in it, and writes no other. What all
// have together is the sum of the slots, so nothing can drift: the slot of a process that was killed counts
// no more as soon as somebody notices.
//
//   Header   limit                               bytes per device, for all processes together
//            devices[kMaxMemoryDevices]          XDevice of each number
//   Slot     owner                               the process: its pid, and when it was started
//            used[kMaxMemoryDevices]             bytes
//
// Ordering. A process first adds to its own slot, then reads all (both seq_cst). Of two that ask at the same
// time, at least one sees the other. So together they never have more than the limit.
//
// Nobody ever waits for another process here. The file belongs to one user, and whoever leaves XSched is not
// bound by it: it is no protection against a hostile program.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "xsched/types.h"

namespace xsched::ipc {

inline constexpr int kMaxMemoryDevices = 64;  // eight GPUs that are divided into eight parts each
// Further processes have an account of their own each, with the same limit.
inline constexpr int kMaxMemoryProcesses = 256;

struct MemoryAccountFile;

// The file of a new program, in `folder`, which is made if it is missing. `owner`: the file is kept at least
// as long as this process lives. Removes the files of programs that have ended.
struct MemoryAccountPath {
  char text[200];
};
Result<MemoryAccountPath> CreateMemoryAccount(const char* folder, uint64_t limit);

class MemoryAccount {
 public:
  constexpr MemoryAccount() = default;
  ~MemoryAccount();
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // Opens the file, which may be missing, and takes a slot in it. A null path: an account of this process
  // alone. `limit`: used if the file does not say one.
  Result<> Open(const char* path, uint64_t limit);
  // In a forked child, whose parent keeps its slot: takes another one.
  Result<> Reopen();

  // The number of a device in this account; -1: there are too many, so it has no limit.
  int Device(XDevice device);
  // False: it would be more than the limit. Nothing is taken then.
  bool Take(int device, uint64_t bytes);
  // Takes it in any case.
  void Count(int device, uint64_t bytes);
  void GiveBack(int device, uint64_t bytes);

  uint64_t limit() const;
  // Of this process, and of all.
  uint64_t Own(int device) const;
  uint64_t Together(int device) const;
  // The same as Own, where it is kept.
  const std::atomic<uint64_t>& OwnWord(int device) const;
  XDevice device(int number) const;
  // Processes that have ended do not count from now on.
  void DropEnded();

 private:
  Result<> TakeSlot();
  bool TryTake(int device, uint64_t bytes);

  MemoryAccountFile* file_ = nullptr;
  int slot_ = -1;
};

}  // namespace xsched::ipc
