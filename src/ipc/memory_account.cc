#include "ipc/memory_account.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file_size.h"
#include "base/system_calls.h"

namespace xsched::ipc {
namespace {

constexpr uint32_t kMagic = 0x43414d58;  // "XMAC"
constexpr uint32_t kVersion = 2;
constexpr char kPrefix[] = "memory-";

// A process by its pid and the time of its start (the lower half, in ticks since the system's start), because
// pids are used again. 0: none.
using ProcessKey = uint64_t;

struct alignas(64) Slot {
  std::atomic<ProcessKey> owner;
  std::atomic<uint64_t> pid_namespace;  // in which the owner has this pid; 0: not written yet
  std::atomic<uint64_t> used[kMaxMemoryDevices];
};

}  // namespace

struct MemoryAccountFile {
  std::atomic<uint32_t> magic;
  std::atomic<uint32_t> version;
  std::atomic<uint64_t> limit;
  std::atomic<ProcessKey> creator;
  std::atomic<uint64_t> creator_namespace;
  std::atomic<int32_t> slots_in_use;  // those behind have never had an owner
  std::atomic<XDevice> devices[kMaxMemoryDevices];
  Slot slots[kMaxMemoryProcesses];
};

namespace {

uint64_t PidNamespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 1;
}

// Its state and when it was started. False: there is no such process, or it cannot be seen.
bool ReadProcess(pid_t pid, char* state, int* threads, uint64_t* start) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  char text[1024];
  const ssize_t length = read(file.get(), text, sizeof text - 1);
  if (length <= 0) return false;
  text[length] = '\0';
  // The name may have spaces and parentheses.
  const char* rest = strrchr(text, ')');
  if (rest == nullptr) return false;
  unsigned long long started = 0;
  const int read =
      sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
             state, threads, &started);
  *start = started;
  return read == 3;
}

ProcessKey KeyOf(pid_t pid, uint64_t start) {
  return uint64_t{static_cast<uint32_t>(pid)} << 32 | (start & UINT32_MAX);
}

// 0: unknown.
ProcessKey ThisProcess() {
  char state;
  int threads;
  uint64_t start;
  const pid_t pid = getpid();
  return ReadProcess(pid, &state, &threads, &start) ? KeyOf(pid, start) : KeyOf(pid, 0);
}

// When in doubt, it has not.
bool HasEnded(ProcessKey process, uint64_t pid_namespace, uint64_t here) {
  if (pid_namespace != here) return false;
  const auto pid = static_cast<pid_t>(process >> 32);
  char state = 0;
  int threads = 0;
  uint64_t start = 0;
  if (!ReadProcess(pid, &state, &threads, &start)) return kill(pid, 0) != 0 && errno == ESRCH;
  if ((process & UINT32_MAX) != 0 && KeyOf(pid, start) != process) return true;
  // A process whose first thread has ended, while others go on, looks like one that has ended.
  return (state == 'Z' || state == 'X') && threads <= 1;
}

bool IsOver(const MemoryAccountFile& file, uint64_t here) {
  const ProcessKey creator = file.creator.load(std::memory_order_acquire);
  if (creator == 0 || !HasEnded(creator, file.creator_namespace.load(std::memory_order_relaxed), here))
    return false;
  for (int i = 0; i < file.slots_in_use.load(std::memory_order_acquire) && i < kMaxMemoryProcesses; ++i) {
    const ProcessKey owner = file.slots[i].owner.load(std::memory_order_acquire);
    if (owner != 0 && !HasEnded(owner, file.slots[i].pid_namespace.load(std::memory_order_acquire), here))
      return false;
  }
  return true;
}

// Unless it has one.
void SetCreator(MemoryAccountFile& file) {
  uint64_t none = 0;
  if (file.creator_namespace.compare_exchange_strong(none, PidNamespace()))
    file.creator.store(ThisProcess(), std::memory_order_release);
}

void Unmap(MemoryAccountFile* file) { munmap(file, sizeof(MemoryAccountFile)); }

Result<MemoryAccountFile*> MapPrivate() {
  void* memory =
      mmap(nullptr, sizeof(MemoryAccountFile), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Error::FromErrno(errno, "cannot map an account of memory");
  return static_cast<MemoryAccountFile*>(memory);
}

Result<MemoryAccountFile*> MapFile(const char* path, int flags) {
  const UniqueFd fd(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (!fd) return Error::FromErrno(errno, "cannot open the account of memory");
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return Error::FromErrno(errno, "cannot look at the account of memory");
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid())
    return Error::Make("the account of memory is no file of this user");
  if (status.st_size != 0 && status.st_size != sizeof(MemoryAccountFile))
    return Error::Make("the account of memory is of another version");
  if (AllocateFile(fd.get(), sizeof(MemoryAccountFile)) != 0)
    return Error::FromErrno(errno, "cannot get room for the account of memory");
  void* memory = mmap(nullptr, sizeof(MemoryAccountFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return Error::FromErrno(errno, "cannot map the account of memory");
  auto* file = static_cast<MemoryAccountFile*>(memory);
  uint32_t none = 0;
  file->version.compare_exchange_strong(none, kVersion);
  none = 0;
  file->magic.compare_exchange_strong(none, kMagic);
  if (file->magic.load() == kMagic && file->version.load() == kVersion) return file;
  Unmap(file);
  return Error::Make("the account of memory is of another version");
}

void RemoveAccountsOfEndedPrograms(const char* folder) {
  DIR* entries = opendir(folder);
  if (entries == nullptr) return;
  const uint64_t here = PidNamespace();
  while (const dirent* entry = readdir(entries)) {
    if (strncmp(entry->d_name, kPrefix, sizeof kPrefix - 1) != 0) continue;
    char path[sizeof(MemoryAccountPath) + sizeof entry->d_name];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    Result<MemoryAccountFile*> file = MapFile(path, 0);
    if (!file) continue;
    if (IsOver(**file, here)) unlink(path);
    Unmap(*file);
  }
  closedir(entries);
}

}  // namespace

Result<MemoryAccountPath> CreateMemoryAccount(const char* folder, uint64_t limit) {
  if (mkdir(folder, 0700) != 0 && errno != EEXIST)
    return Error::FromErrno(errno, "cannot make the folder for the account of memory");
  RemoveAccountsOfEndedPrograms(folder);
  uint64_t number = 0;
  if (GetRandom(&number, sizeof number, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof number))
    return Error::FromErrno(errno, "cannot name the account of memory");
  MemoryAccountPath path{};
  const int length = snprintf(path.text, sizeof path.text, "%s/%s%016llx", folder, kPrefix,
                              static_cast<unsigned long long>(number));
  if (length < 0 || static_cast<size_t>(length) >= sizeof path.text)
    return Error::Make("the path of the account of memory is too long");
  Result<MemoryAccountFile*> file = MapFile(path.text, O_CREAT | O_EXCL);
  if (!file) return file.error();
  (*file)->limit.store(limit);
  SetCreator(**file);
  Unmap(*file);
  return path;
}

MemoryAccount::~MemoryAccount() {
  if (file_ == nullptr) return;
  if (slot_ >= 0) file_->slots[slot_].owner.store(0, std::memory_order_release);
  Unmap(file_);
}

Result<> MemoryAccount::Open(const char* path, uint64_t limit) {
  Result<MemoryAccountFile*> file = path == nullptr ? MapPrivate() : MapFile(path, O_CREAT);
  if (!file) return file.error();
  file_ = *file;
  uint64_t none = 0;
  file_->limit.compare_exchange_strong(none, limit);
  Result<> taken = TakeSlot();
  if (!taken) {
    Unmap(file_);
    file_ = nullptr;
    return taken;
  }
  SetCreator(*file_);  // of a file that somebody has removed, and we have made anew
  return taken;
}

Result<> MemoryAccount::Reopen() {
  slot_ = -1;
  return TakeSlot();
}

// A program that this process was before (exec) has given everything back: its slot is taken over.
Result<> MemoryAccount::TakeSlot() {
  const ProcessKey self = ThisProcess();
  const uint64_t here = PidNamespace();
  for (int i = 0; i < kMaxMemoryProcesses; ++i) {
    Slot& slot = file_->slots[i];
    ProcessKey owner = slot.owner.load(std::memory_order_acquire);
    if (owner != 0 && owner != self &&
        !HasEnded(owner, slot.pid_namespace.load(std::memory_order_acquire), here))
      continue;
    if (!slot.owner.compare_exchange_strong(owner, self)) continue;
    slot.pid_namespace.store(here, std::memory_order_release);
    for (std::atomic<uint64_t>& used : slot.used) used.store(0);
    int32_t in_use = file_->slots_in_use.load();
    while (in_use <= i && !file_->slots_in_use.compare_exchange_weak(in_use, i + 1)) {
    }
    slot_ = i;
    return {};
  }
  return Error::Make("more than %d processes have the account of memory", kMaxMemoryProcesses);
}

int MemoryAccount::Device(XDevice device) {
  for (int i = 0; i < kMaxMemoryDevices; ++i) {
    XDevice known = file_->devices[i].load(std::memory_order_acquire);
    if (known == 0 && file_->devices[i].compare_exchange_strong(known, device)) return i;
    if (known == device) return i;
  }
  return -1;
}

bool MemoryAccount::TryTake(int device, uint64_t bytes) {
  std::atomic<uint64_t>& used = file_->slots[slot_].used[device];
  used.fetch_add(bytes);
  if (Together(device) <= limit()) return true;
  used.fetch_sub(bytes);
  return false;
}

bool MemoryAccount::Take(int device, uint64_t bytes) {
  if (bytes > limit()) return false;
  if (TryTake(device, bytes)) return true;
  // Somebody has ended and still counts; or somebody else has asked for too much at the same moment.
  DropEnded();
  for (int attempts = 0; attempts < 3; ++attempts) {
    if (TryTake(device, bytes)) return true;
    sched_yield();
  }
  return false;
}

void MemoryAccount::Count(int device, uint64_t bytes) { file_->slots[slot_].used[device].fetch_add(bytes); }

void MemoryAccount::GiveBack(int device, uint64_t bytes) {
  file_->slots[slot_].used[device].fetch_sub(bytes);
}

uint64_t MemoryAccount::limit() const { return file_->limit.load(std::memory_order_relaxed); }

const std::atomic<uint64_t>& MemoryAccount::OwnWord(int device) const {
  return file_->slots[slot_].used[device];
}

uint64_t MemoryAccount::Own(int device) const { return OwnWord(device).load(std::memory_order_relaxed); }

uint64_t MemoryAccount::Together(int device) const {
  uint64_t sum = 0;
  const int in_use = file_->slots_in_use.load();
  for (int i = 0; i < in_use && i < kMaxMemoryProcesses; ++i) {
    const Slot& slot = file_->slots[i];
    if (slot.owner.load() != 0) sum += slot.used[device].load();
  }
  return sum;
}

XDevice MemoryAccount::device(int number) const {
  return file_->devices[number].load(std::memory_order_acquire);
}

void MemoryAccount::DropEnded() {
  const uint64_t here = PidNamespace();
  const int in_use = file_->slots_in_use.load(std::memory_order_acquire);
  for (int i = 0; i < in_use && i < kMaxMemoryProcesses; ++i) {
    Slot& slot = file_->slots[i];
    ProcessKey owner = slot.owner.load(std::memory_order_acquire);
    if (i == slot_ || owner == 0) continue;
    if (HasEnded(owner, slot.pid_namespace.load(std::memory_order_acquire), here))
      slot.owner.compare_exchange_strong(owner, 0);
  }
}

}  // namespace xsched::ipc
