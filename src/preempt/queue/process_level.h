// Level 3 of the whole process, for its queues. Implemented by scheduling/process_slices.h, and by tests.
#pragma once

namespace xsched::preempt {

class ProcessLevel {
 public:
  // True unless the process is known to have only the driver's own slices.
  virtual bool AnyTaken() = 0;
  // True if the HAL has given back everything that it was asked to. If not, it tries again now.
  virtual bool Settled() = 0;

 protected:
  ~ProcessLevel() = default;
};

}  // namespace xsched::preempt
