// The process's channel groups, which the GPU's own scheduler runs in turns (level 3). They are found by
// watching the process's requests to the resource manager, and controlled by calls on the same open file.
//
// Works with stock drivers and without privilege, and only on groups of this process. Each call is a round
// trip to the GPU's system processor (250 to 450 µs), made without a lock. A timeslice may be accepted and
// read back, and still have no effect: some drivers ignore it.
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

// Names one compute group. A CUDA context has one, a green context one more. The group may not exist any
// more; then the calls return that.
struct ChannelGroup {
  rm::Handle client = 0;
  rm::Handle handle = 0;
  // The driver has put it on the hardware's list. Its context is nearly complete, and a timeslice that is set
  // now stays.
  bool scheduled = false;
};

class ChannelGroups {
 public:
  constexpr ChannelGroups() = default;

  // A request of the program, after it was made. Keeps errno.
  void Observe(int fd, unsigned long request, const void* arg, int result);

  // The compute groups on `device`: a GPU by its PCI address, or an instance of one. An error says why they
  // are not known.
  Result<Array<ChannelGroup>> OfDevice(XDevice device);
  // Grows whenever a group was made or freed, or the driver scheduled one or set its timeslice. Then what
  // must hold has to be set again.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // Takes effect at once, and reads back the result. If the hardware rounds it down, this is an error, and
  // `*accepted` has the result.
  Result<> SetTimeslice(const ChannelGroup& group, std::chrono::microseconds timeslice,
                        bool* accepted = nullptr);
  Result<std::chrono::microseconds> GetTimeslice(const ChannelGroup& group);
  // With `run` false, running kernels stop where they are, and nothing of the group runs until it is called
  // with true. (Taking the group off its schedule is accepted as well, but has no effect: H200, driver 580.)
  // An error: the state of some of its channels is not known.
  Result<> SetRunning(const ChannelGroup& group, bool run);
  // True if the driver has freed it. Then nothing is left to be set. This makes a request, so call it only
  // after a failure.
  bool IsGone(const ChannelGroup& group);

  // Ok: level 3 works on `device` for this process, as far as requests can show. An error says why not. The
  // answer may change with changes().
  Result<> Level3Support(XDevice device);

  // How control calls are made. REQUIRES: `call` stays valid.
  void UseControlCall(rm::ControlCall call) { control_call_.store(call, std::memory_order_release); }

  // Around fork: a child cannot use its parent's groups, and forgets them. The lock is held in between, which
  // the analysis cannot see.
  void BeforeFork() NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInParent() NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInChild();

 private:
  struct Placed;  // a group, and what is known of its device

  rm::Reply Control(rm::Handle client, rm::Handle object, uint32_t command, void* params, size_t size);
  bool FindGroups(Array<Placed>* out);  // false: out of memory
  Result<XDevice> AskAddress(const Placed& group);
  bool HasOneGpu();
  void Changed();
  void Apply(const rm::Event& event, int fd) REQUIRES(mutex_);

  Mutex<LockRank::kChannelGroups> mutex_;
  ObjectTable table_ GUARDED_BY(mutex_);
  // The thread that holds mutex_ during a fork; 0: none. On this thread, fork handlers of other libraries may
  // make requests as well.
  std::atomic<pthread_t> forking_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<rm::ControlCall> control_call_{&rm::SystemCall};
};

// The groups of this process. From the first observed object on, fork is handled.
ChannelGroups& OwnChannelGroups();

void ObserveRequest(int fd, unsigned long request, const void* arg, int result);
// Call it after each ioctl(2) of the process, with the result. If the request is not for RM, it costs one
// comparison.
inline void ObserveIoctl(int fd, unsigned long request, const void* arg, int result) {
  if (rm::MayConcern(request)) [[unlikely]]
    ObserveRequest(fd, request, arg, result);
}

}  // namespace xsched::cuda
