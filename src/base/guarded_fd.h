// A descriptor of ours in a program that may close descriptors it does not know (closefrom), and open its own
// files with the same number. It gets a high number, which few programs use, and our open file is marked.
// Call Intact before each use: it tells whether the descriptor is still ours. Reset closes only our own.
//
// The mark is the number of the signal that the kernel would send when something can be read (F_SETSIG).
// Nobody asks for such signals of our files, so none is ever sent. To read it takes half as long as fstat,
// and launches that ring a doorbell check it. Where a sandbox does not know F_SETSIG, the file's identity is
// compared. Of eventfds only the type is compared then, because all of them are one inode.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/fd.h"

namespace xsched {

class GuardedFd {
 public:
  constexpr GuardedFd() = default;
  explicit GuardedFd(UniqueFd low) { Take(std::move(low)); }
  GuardedFd(GuardedFd&& other) noexcept { Swap(other); }
  GuardedFd& operator=(GuardedFd&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~GuardedFd() { Reset(); }

  int get() const { return fd_; }  // -1: none
  explicit operator bool() const { return fd_ >= 0; }
  // Async-signal-safe.
  bool Intact() const {
    if (fd_ < 0) return false;
    if (marked_) [[likely]]
      return fcntl(fd_, F_GETSIG) == kMark;
    struct stat now {};
    return fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_ &&
           (now.st_mode & S_IFMT) == type_;
  }
  // Closes it, if it is still ours.
  void Reset() {
    if (Intact()) close(fd_);
    fd_ = -1;
  }

  // The lowest number for a descriptor of ours (F_DUPFD): a program that closes one and opens a file expects
  // the lowest free number for it.
  static int LowestNumber() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= 2 * kRoomAbove) return 0;
    const rlim_t highest = limit.rlim_cur - kRoomAbove;
    return static_cast<int>(highest < kHighest ? highest : kHighest);
  }

 private:
  // High enough not to be in the program's way, and low enough to keep the table of descriptors small.
  static constexpr rlim_t kHighest = 4000;
  static constexpr rlim_t kRoomAbove = 128;
  // A real-time signal's number, which no program has any reason to choose.
  static constexpr int kMark = 57;

  void Take(UniqueFd low) {
    if (!low) return;
    const int high = fcntl(low.get(), F_DUPFD_CLOEXEC, LowestNumber());
    fd_ = high >= 0 ? high : low.Release();
    struct stat ours {};
    fstat(fd_, &ours);
    device_ = ours.st_dev;
    inode_ = ours.st_ino;
    type_ = ours.st_mode & S_IFMT;
    marked_ = fcntl(fd_, F_SETSIG, kMark) == 0 && fcntl(fd_, F_GETSIG) == kMark;
  }
  void Swap(GuardedFd& other) {
    std::swap(fd_, other.fd_);
    std::swap(marked_, other.marked_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    std::swap(type_, other.type_);
  }

  int fd_ = -1;
  bool marked_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  mode_t type_ = 0;
};

}  // namespace xsched
