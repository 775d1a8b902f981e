// Level 3 of the whole process, as its queues see it. Implemented by scheduling/process_slices.h, and by
// tests.
#pragma once

namespace xsched::preempt {

class ProcessLevel {
 public:
  // Has this process anything else than the driver's own slices, as far as is known?
  virtual bool AnyTaken() = 0;
  // Has the HAL given back all that it was asked to? Where it could not, it tries again now.
  virtual bool Settled() = 0;

 protected:
  ~ProcessLevel() = default;
};

}  // namespace xsched::preempt
