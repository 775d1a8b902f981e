// Initialization, contexts (primary and ordinary), and each thread's stack of them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cuda_api.h"
#include "device.h"

namespace standin {

// Blocked calls, which block others. A call that waits for them waits for those that are blocked at that
// moment, not for later ones.
struct BlockedCalls {
  unsigned inside = 0;
  uint64_t left = 0;

  // REQUIRES TheLock.
  void AwaitThose(Lock& lock) const;
};
// A blocked call, from its first wait to its end. REQUIRES TheLock at both.
class Blocked {
 public:
  explicit Blocked(BlockedCalls& calls) : calls_(calls) { ++calls_.inside; }
  ~Blocked() {
    --calls_.inside, ++calls_.left;
    CommandsDone().notify_all();
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  BlockedCalls& calls_;
};

struct Context {
  Device* device;
  uint64_t id;
  unsigned flags = 0;
  bool primary = false;
  unsigned retained = 0;         // primary contexts
  unsigned attached = 0;         // by cuCtxAttach
  CUresult lost = CUDA_SUCCESS;  // sticky
  bool destroyed = false;
  Context* primary_of_green = nullptr;  // of a green context: the context whose memory it uses
  std::thread::id current_on;           // of a green context: it is current to one thread at a time
  unsigned times_current = 0;
  std::shared_ptr<Stream> legacy;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread;
  std::set<std::shared_ptr<Stream>> streams;  // the program's own
  BlockedCalls waiting_for_room;              // in any of its streams
  BlockedCalls waiting_for_all;               // cuMemFree and similar calls, which block launches
};

bool IsInitialized();
bool IsForkedChild();
CUresult LossOfCurrentContext();
int DriverVersion();
// The physical ordinals that CUDA_VISIBLE_DEVICES shows of `count`, in its order.
std::vector<int> VisibleDevices(int count);

// All below REQUIRE TheLock.
Device* DeviceAt(int ordinal);  // by the place among the visible ones; null: there is none
int DeviceCount();
Context* CurrentContext();               // null: none
Context* FindContext(CUcontext handle);  // null: not a context (any more)
inline CUcontext HandleOf(Context* context) { return reinterpret_cast<CUcontext>(context); }
// Waits for everything that was submitted to the context so far, and returns its error.
CUresult AwaitContext(Lock& lock, Context& context);
// The same, and blocks launches on the context meanwhile (rules.h, waiting_free_blocks).
CUresult AwaitContextAlone(Lock& lock, Context& context);
Context* NewContext(Device& device, bool primary);
// Contexts are never freed, so that handles of destroyed ones can be recognized.
void Retire(Context& context);
CUresult AwaitCommand(Lock& lock, const CommandPtr& command);

}  // namespace standin
