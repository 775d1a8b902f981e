// What every function of HSA that returns a status passes first: counting, and faults on demand.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>

namespace standin_hsa {

struct Entry {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> fail_in{0};  // 1: the next call fails; 0: none does
  std::atomic<int> fail_with{0};

  // What the call has to return instead of doing its work; HSA_STATUS_SUCCESS: nothing.
  hsa_status_t Pass();
};

// Never destroyed; made when first asked for.
Entry& EntryNamed(const char* function);
void ReadFaultsFromEnvironment();

}  // namespace standin_hsa

#define HSA_ENTRY()                                                                   \
  do {                                                                                \
    static ::standin_hsa::Entry& entry = ::standin_hsa::EntryNamed(__func__);         \
    if (hsa_status_t fault = entry.Pass(); fault != HSA_STATUS_SUCCESS) return fault; \
  } while (false)
