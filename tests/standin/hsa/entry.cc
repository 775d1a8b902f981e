#include "entry.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

#include "standin_hsa.h"

namespace standin_hsa {
namespace {

struct Entries {
  std::mutex lock;
  std::map<std::string, Entry, std::less<>> by_name;
};
Entries& All() {
  static auto* const entries = new Entries;
  return *entries;
}

}  // namespace

Entry& EntryNamed(const char* function) {
  Entries& all = All();
  std::lock_guard guard(all.lock);
  return all.by_name[function];
}

hsa_status_t Entry::Pass() {
  calls.fetch_add(1, std::memory_order_relaxed);
  uint64_t in = fail_in.load(std::memory_order_relaxed);
  while (in != 0 && !fail_in.compare_exchange_weak(in, in - 1, std::memory_order_relaxed)) {
  }
  return in == 1 ? static_cast<hsa_status_t>(fail_with.load(std::memory_order_relaxed)) : HSA_STATUS_SUCCESS;
}

void ReadFaultsFromEnvironment() {
  const char* text = getenv("STANDIN_HSA_FAIL");
  std::istringstream faults(text == nullptr ? "" : text);
  for (std::string fault; std::getline(faults, fault, ',');) {
    std::istringstream fields(fault);
    std::string function, nth, status;
    if (std::getline(fields, function, ':') && std::getline(fields, nth, ':') &&
        std::getline(fields, status)) {
      standin_hsa_fail(function.c_str(), std::strtoull(nth.c_str(), nullptr, 10), std::atoi(status.c_str()));
    }
  }
}

}  // namespace standin_hsa

uint64_t standin_hsa_calls(const char* function) {
  return standin_hsa::EntryNamed(function).calls.load(std::memory_order_relaxed);
}

void standin_hsa_fail(const char* function, uint64_t nth, int status) {
  standin_hsa::Entry& entry = standin_hsa::EntryNamed(function);
  entry.fail_with.store(status, std::memory_order_relaxed);
  entry.fail_in.store(nth, std::memory_order_relaxed);
}
