// A device as the programs of `xsched calibrate` use it: queues, and one kernel whose length is a number of
// loops, as an amount of work and not a time. It fills the device, so that two never run at the same time.
// Each platform that can be calibrated has one, which uses the driver as programs do. Errors are exceptions:
// of the standard library, and ProbeError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace xsched::cli {

// For one thread.
class WorkQueue {
 public:
  static constexpr size_t kMarks = 64;

  virtual ~WorkQueue() = default;
  virtual void Launch(uint32_t loops) = 0;
  // The same; Wait(mark) returns when it has ended. REQUIRES: mark < kMarks.
  virtual void LaunchMarked(uint32_t loops, size_t mark) = 0;
  virtual void Wait(size_t mark) = 0;
  virtual void Finish() = 0;
};

class WorkDevice {
 public:
  virtual ~WorkDevice() = default;
  virtual std::string Name() const = 0;
  virtual std::unique_ptr<WorkQueue> NewQueue() = 0;
  // Called in each thread, before it uses a queue.
  virtual void EnterThread() const {}
};

}  // namespace xsched::cli
