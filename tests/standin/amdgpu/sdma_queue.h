// A queue of a copy engine (SDMA): what ROCr sends it for copies and fills of plain memory.
#pragma once

#include "queue.h"

namespace standin_amdgpu {

class SdmaQueue final : public Queue {
 public:
  using Queue::Queue;

 private:
  bool Advance(std::unique_lock<std::mutex>& lock) override;
};

}  // namespace standin_amdgpu
