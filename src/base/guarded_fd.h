// A descriptor of ours in a program that may close what it does not know (closefrom) and open files of its
// own in that place. It is put at a high number, where few programs' own descriptors come, and remembered by
// what the kernel says of it: whoever is about to write asks Intact first, and closes nothing that is not
// ours.
//
// An eventfd has no identity of its own (all of them are one inode): of it, Intact says that it is one of
// that kind. At a high number that is as good as certain.
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
    struct stat now {};
    return fd_ >= 0 && fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_ &&
           (now.st_mode & S_IFMT) == type_;
  }
  // Closes it, if it is still ours.
  void Reset() {
    if (Intact()) close(fd_);
    fd_ = -1;
  }

 private:
  // High enough to be out of the way; not so high that the table of descriptors grows large for it.
  static constexpr rlim_t kHighest = 4000;
  static constexpr rlim_t kRoomAbove = 128;

  static int LowestNumber() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= 2 * kRoomAbove) return 0;
    const rlim_t highest = limit.rlim_cur - kRoomAbove;
    return static_cast<int>(highest < kHighest ? highest : kHighest);
  }

  void Take(UniqueFd low) {
    if (!low) return;
    const int high = fcntl(low.get(), F_DUPFD_CLOEXEC, LowestNumber());
    fd_ = high >= 0 ? high : low.Release();
    struct stat ours {};
    fstat(fd_, &ours);
    device_ = ours.st_dev;
    inode_ = ours.st_ino;
    type_ = ours.st_mode & S_IFMT;
  }
  void Swap(GuardedFd& other) {
    std::swap(fd_, other.fd_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    std::swap(type_, other.type_);
  }

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  mode_t type_ = 0;
};

}  // namespace xsched
