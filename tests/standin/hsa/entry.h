// The entry of every HSA function that returns a status: counting, and faults on demand.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>

namespace standin_hsa {

struct Entry {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> fail_in{0};  // 1: the next call fails; 0: none does
  std::atomic<int> fail_with{0};

  // The status that the call must return instead of doing its work; HSA_STATUS_SUCCESS: it does its work.
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
