#include "sharing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "rules.h"

namespace standin {

// A new file is all zero: no process, and nobody's turn. It is changed only under an flock of the file.
struct Turns::File {
  static constexpr int kSlots = 64;
  struct Slot {
    std::atomic<int32_t> pid;        // 0: free
    std::atomic<uint32_t> wants;     // it has a kernel to run
    std::atomic<uint32_t> runnable;  // it has unfinished work, and its channels are on
    std::atomic<int64_t> slice_us;
    std::atomic<int64_t> seen;  // when it last asked for the device; steady clock, ns
  } slots[kSlots];
  std::atomic<int32_t> turn;       // slot + 1; 0: nobody's
  std::atomic<int64_t> turn_ends;  // steady clock, ns; the same clock in all processes
};

namespace {

// Two groups with slices of at most this make no progress beside each other.
constexpr std::chrono::microseconds kShortestSlice{1};
// A process that has not asked for so long is stopped. A running one asks every 20 us.
constexpr std::chrono::milliseconds kStopped{30};

class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) { flock(fd_, LOCK_EX); }
  ~FileLock() { flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

int64_t Nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

bool IsAlive(int pid) { return pid != 0 && (kill(pid, 0) == 0 || errno == EPERM); }

}  // namespace

Turns::Turns(int ordinal) {
  if (const char* us = std::getenv("STANDIN_CUDA_TIMESLICE_US"))
    slice_ = std::chrono::microseconds(std::atoll(us));
  const char* folder = std::getenv("STANDIN_CUDA_SHARED");
  if (folder == nullptr || *folder == '\0') return;
  const std::string path = std::string(folder) + "/device" + std::to_string(ordinal);
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) return;
  FileLock lock(fd_);
  if (ftruncate(fd_, sizeof(File)) != 0) return;
  void* map = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (map == MAP_FAILED) return;
  auto* file = static_cast<File*>(map);
  for (int i = 0; i < File::kSlots; ++i) {
    if (IsAlive(file->slots[i].pid)) continue;
    file->slots[i].wants = file->slots[i].runnable = 0;
    file->slots[i].pid = getpid();
    slot_ = i;
    file_ = file;
    Publish();
    return;
  }
}

void Turns::Publish() {
  if (file_ == nullptr) return;
  file_->slots[slot_].slice_us = slice_.count();
  file_->slots[slot_].runnable = runnable_ && scheduled_;
}

void Turns::SetRunnable(bool runnable) {
  if (runnable == runnable_) return;
  runnable_ = runnable;
  Publish();
}

void Turns::SetTimeslice(std::chrono::microseconds slice) {
  slice_ = slice;
  Publish();
}

void Turns::SetScheduled(bool scheduled) {
  scheduled_ = scheduled;
  Publish();
}

bool Turns::StandsStill() const {
  static const bool obeyed = Obeys("shortest_slices_stand_still");
  if (!obeyed || slice_ > kShortestSlice) return false;
  for (int i = 0; i < File::kSlots; ++i) {
    const File::Slot& slot = file_->slots[i];
    if (i != slot_ && slot.runnable && slot.slice_us <= kShortestSlice.count() && IsAlive(slot.pid))
      return true;
  }
  return false;
}

bool Turns::IsAtWork(int slot, Clock::time_point now) const {
  const File::Slot& s = file_->slots[slot];
  return s.wants && Nanoseconds(now) - s.seen < Nanoseconds(Clock::time_point(kStopped)) && IsAlive(s.pid);
}

bool Turns::Want(Clock::time_point now) {
  if (!scheduled_) {
    Leave();
    return false;
  }
  if (file_ == nullptr) return true;
  file_->slots[slot_].seen = Nanoseconds(now);
  if (StandsStill()) {
    Leave();
    return false;
  }
  if (!wanting_) {
    wanting_ = true;
    file_->slots[slot_].wants = 1;
  }
  if (file_->turn == slot_ + 1) {
    if (file_->turn_ends == 0) file_->turn_ends = Nanoseconds(now + slice_);
    if (Nanoseconds(now) < file_->turn_ends) return true;
  }
  FileLock lock(fd_);
  return PassOn(now, true);
}

void Turns::Leave() {
  if (file_ == nullptr || !wanting_) return;
  wanting_ = false;
  file_->slots[slot_].wants = 0;
  FileLock lock(fd_);
  if (file_->turn == slot_ + 1) PassOn(Clock::now(), false);
}

// REQUIRES: the file's lock. Passes the turn to the next process that wants it, if the turn is over, is ours,
// or its owner has gone. Returns whether it is ours afterwards.
bool Turns::PassOn(Clock::time_point now, bool still_wanted) {
  const int owner = file_->turn - 1;
  const bool ours = owner == slot_;
  if (owner >= 0 && !ours && IsAtWork(owner, now)) return false;
  const int first = owner >= 0 ? owner + 1 : slot_;
  for (int i = 0; i < File::kSlots; ++i) {
    const int slot = (first + i) % File::kSlots;
    if (slot == slot_ ? !still_wanted : !IsAtWork(slot, now)) continue;
    file_->turn = slot + 1;
    // Another process starts its slice when it notices its turn. Only it knows the length.
    file_->turn_ends = slot == slot_ ? Nanoseconds(now + slice_) : 0;
    return slot == slot_;
  }
  file_->turn = 0;
  return false;
}

}  // namespace standin
