// Initialisation, contexts (primary and ordinary), and each thread's stack of them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cuda_api.h"
#include "device.h"

namespace standin {

struct Context {
  Device* device;
  uint64_t id;
  unsigned flags = 0;
  bool primary = false;
  unsigned retained = 0;         // primary contexts
  CUresult lost = CUDA_SUCCESS;  // sticky
  bool destroyed = false;
  std::shared_ptr<Stream> legacy;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread;
  std::set<std::shared_ptr<Stream>> streams;  // the program's own
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
CUresult AwaitCommand(Lock& lock, const CommandPtr& command);

}  // namespace standin
