#include "shim/cuda/driver.h"

#include "hal/cuda/driver.h"

namespace xsched::cuda {

constinit std::atomic<const Functions*> driver{nullptr};

const Functions& LookUpDriver() {
  static constinit const Functions kNowhere{};
  const Functions* found = FindDriver();
  if (found == nullptr) return kNowhere;
  driver.store(found, std::memory_order_release);
  return *found;
}

}  // namespace xsched::cuda
