// Whose turn it is on a device that several processes share: round robin of time slices, through a file in a
// common folder. Never knows what runs. rules.h says what slices do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace standin {

using Clock = std::chrono::steady_clock;

class Turns {
 public:
  // Without a folder in the environment, only this process uses the device.
  explicit Turns(int ordinal);

  // This process wants the device. Returns whether it has its turn now.
  bool Want(Clock::time_point now);
  // It has no kernel to run now.
  void Leave();
  // Whether it has unfinished work, which may also wait at a gate.
  void SetRunnable(bool runnable);

  bool shared() const { return file_ != nullptr; }
  void SetTimeslice(std::chrono::microseconds slice);
  std::chrono::microseconds timeslice() const { return slice_; }
  void SetScheduled(bool scheduled);
  bool scheduled() const { return scheduled_; }

 private:
  struct File;
  bool PassOn(Clock::time_point now, bool still_wanted);
  bool StandsStill() const;
  bool IsAtWork(int slot, Clock::time_point now) const;
  void Publish();

  File* file_ = nullptr;
  int fd_ = -1;
  int slot_ = -1;
  bool wanting_ = false;
  bool runnable_ = false;
  bool scheduled_ = true;
  std::chrono::microseconds slice_{2000};
};

}  // namespace standin
