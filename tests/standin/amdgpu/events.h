// KFD's events: what the GPU interrupts for, and what the program waits for. Thread-safe.
#pragma once

#include <linux/kfd_ioctl.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace standin_amdgpu {

class Events {
 public:
  int Create(kfd_ioctl_create_event_args& args);
  int Destroy(uint32_t id);
  int Set(uint32_t id);
  int Reset(uint32_t id);
  int Wait(kfd_ioctl_wait_events_args& args);

  // The GPU's interrupt for an event.
  void Interrupt(uint32_t id) { Set(id); }

 private:
  struct Event {
    bool set = false;
    bool resets_itself = false;
    bool is_signal = false;
    int waiters = 0;
    uint64_t age = 1;  // one more each time it is set
  };
  // One event of a waiter.
  struct Waited {
    uint32_t id = 0;
    bool happened = false;  // before the waiter slept
    uint64_t age = 0;       // when it came
  };

  Event* Find(uint32_t id);
  Waited Enter(const kfd_event_data& data);
  // How many have happened; -1: one does not exist any more.
  int CountHappened(const std::vector<Waited>& all);
  void Leave(const std::vector<Waited>& all, std::span<kfd_event_data> data);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, Event> events_;
};

}  // namespace standin_amdgpu
