// The process's channel groups: what the GPU's own scheduler runs in turns (level 3). Found by watching the
// process's requests to the resource manager; driven by control calls on the open file that made them.
//
// Works with stock drivers and without privilege, and only ever on groups of this process. Each call is a
// round trip to the GPU's system processor (250 to 450 µs), made without a lock held. That a timeslice is
// accepted and reads back does not prove that it has an effect: some drivers take it and ignore it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/array.h"
#include "base/mutex.h"
#include "hal/cuda/channel_groups/object_table.h"
#include "hal/cuda/channel_groups/resource_manager.h"
#include "xsched/types.h"

namespace xsched::cuda {

// One compute group (a CUDA context has one, a green context one more). A name: the group may be gone, which
// the calls then say.
struct ChannelGroup {
  rm::Handle client = 0;
  rm::Handle handle = 0;
  // The driver has put it on the hardware's list: its context is as good as up, and a timeslice set now
  // holds.
  bool scheduled = false;
};

class ChannelGroups {
 public:
  constexpr ChannelGroups() = default;

  // A request of the program's own, after it was made. Keeps errno.
  void Observe(int fd, unsigned long request, const void* arg, int result);

  // The compute groups on `device`, a GPU by its PCI address or an instance of one. An error says why they
  // cannot be told.
  Result<Array<ChannelGroup>> OfDevice(XDevice device);
  // Grows whenever groups came or went, or the driver scheduled one or set its timeslice: look again, and set
  // again what must hold.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // Takes effect at once, and reads back. The hardware may round it down: that is an error, but `*accepted`.
  Result<> SetTimeslice(const ChannelGroup& group, std::chrono::microseconds timeslice,
                        bool* accepted = nullptr);
  Result<std::chrono::microseconds> GetTimeslice(const ChannelGroup& group);
  // Not: what runs is stopped where it is, and nothing of the group runs until this is called again. (Taking
  // the group off its schedule is accepted as well, and has no effect: H200, driver 580.)
  // An error: of some of its channels it is not known.
  Result<> SetRunning(const ChannelGroup& group, bool run);
  // Has the driver freed it? Then nothing is left to be set. Asks, so for failures only.
  bool IsGone(const ChannelGroup& group);

  // Ok: level 3 works on `device` for this process, as far as asking tells. An error says why not; it may
  // change with changes().
  Result<> Level3Support(XDevice device);

  // How control calls are made. REQUIRES: `call` stays valid.
  void UseControlCall(rm::ControlCall call) { control_call_.store(call, std::memory_order_release); }

  // Around fork: a child has no use of its parent's groups, and forgets them.
  void BeforeFork();
  void AfterForkInParent();
  void AfterForkInChild();

 private:
  struct Placed;  // a group, and what is known of its device

  rm::Reply Control(rm::Handle client, rm::Handle object, uint32_t command, void* params, size_t size);
  bool FindGroups(Array<Placed>* out);  // false: out of memory
  Result<XDevice> AskAddress(const Placed& group);
  bool HasOneGpu();
  void Changed();

  Mutex mutex_;
  ObjectTable table_;  // under mutex_
  // The thread that holds mutex_ over a fork; 0: none. Others' fork handlers, too, may make requests on it.
  std::atomic<pthread_t> forking_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<rm::ControlCall> control_call_{&rm::SystemCall};
};

// This process's. Also knows about fork, from the first observed object on.
ChannelGroups& OwnChannelGroups();

void ObserveRequest(int fd, unsigned long request, const void* arg, int result);
// To be called after each ioctl(2) of the process, with what it returned. Costs one comparison where it is
// not for RM.
inline void ObserveIoctl(int fd, unsigned long request, const void* arg, int result) {
  if (rm::MayConcern(request)) [[unlikely]]
    ObserveRequest(fd, request, arg, result);
}

}  // namespace xsched::cuda
