// A queue of AQL packets: barriers, and dispatches of kernels. One packet at a time, whether or not it has a
// barrier bit: a GPU need not run packets together.
#pragma once

#include "queue.h"
#include "wave.h"

namespace standin_amdgpu {

union Packet;

class AqlQueue final : public Queue {
 public:
  using Queue::Queue;

 private:
  enum class State { kWaits, kDone, kEnds };

  bool Advance(std::unique_lock<std::mutex>& lock) override;
  void Save() override { wave_.Save(made()); }
  void Restore() override { wave_.Restore(made()); }

  State Process(Packet& packet, std::unique_lock<std::mutex>& lock);
  State Dispatch(Packet& packet, std::unique_lock<std::mutex>& lock);
  void Complete(Packet& packet);

  Wave wave_;  // of the packet that runs
  uint64_t begun_ = 0;
};

}  // namespace standin_amdgpu
