// A queue's counterpart in the kernel's driver, if a test has put a fake driver into the process
// (tests/standin/kfd). It is made, changed and destroyed by the requests that AMD's own library makes.
// Without the fake, there are no requests to any driver.
#pragma once

#include <atomic>
#include <cstdint>

namespace standin_hsa {

// Makes the requests at the start of HSA.
void OpenKfd();

class KfdQueue {
 public:
  KfdQueue() = default;
  ~KfdQueue() { Destroy(); }
  KfdQueue(const KfdQueue&) = delete;
  KfdQueue& operator=(const KfdQueue&) = delete;

  // False: the driver refuses.
  bool Create(uint32_t gpu, const void* ring, uint32_t bytes);
  // Who awaits it goes on.
  void Destroy();
  bool SetPriority(uint32_t priority);
  // Returns when the queue is at work. False: it is gone.
  bool AwaitActive() const;

 private:
  uint64_t ring_ = 0;
  uint32_t bytes_ = 0;
  std::atomic<uint32_t> id_{0};  // 0: there is none
};

}  // namespace standin_hsa
