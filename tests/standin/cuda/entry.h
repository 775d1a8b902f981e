// The entry of every exported function: counting, faults on demand, and the rules for whole classes of
// functions (initialization, lost contexts, capture, host functions). It never does a function's own work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuda_api.h"

namespace standin {

struct EntryState {
  const char* name;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> fail_in{0};  // 1: the next call fails; 0: none does
  std::atomic<int> fail_with{0};
  std::atomic<uint64_t> slow_ns{0};
  uint32_t rules = 0;  // bits of Rule, set before main
};
extern EntryState entries[];  // generated
extern const size_t entry_count;

enum Rule : uint32_t {
  kAlways = 1,                // works before cuInit and in a forked child
  kDespiteLostContext = 2,    // works while the thread's context is lost
  kUnsafeInCapture = 4,       // "potentially unsafe" (cuThreadExchangeStreamCaptureMode)
  kConflictsWithCapture = 8,  // refused while any stream of the context captures, whatever the modes
  kNotInHostFunction = 16,
};

class Entry {
 public:
  // `per_thread`: the null stream means this thread's default stream, for the rest of the call.
  Entry(EntryState& state, bool per_thread);
  bool refused() const { return result_ != CUDA_SUCCESS; }
  CUresult result() const { return result_; }

 private:
  CUresult result_ = CUDA_SUCCESS;
};

EntryState* FindEntry(const char* name);
CUresult Unsupported(const char* name);
void ReadFaultsFromEnvironment();

// True if the null stream means the thread's own default stream in the current call.
extern thread_local bool null_stream_is_per_thread;
// Set while the thread runs a host function of the program.
extern thread_local bool in_host_function;

}  // namespace standin
