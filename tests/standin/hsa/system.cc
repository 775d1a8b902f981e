// Starting and stopping, and what holds for the whole system.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstring>

#include "clock.h"
#include "entry.h"
#include "kfd.h"
#include "newer.h"
#include "signals.h"

using namespace standin_hsa;

namespace {

std::atomic<uint32_t> users{0};

}  // namespace

hsa_status_t hsa_init() {
  static const bool once = (ReadFaultsFromEnvironment(), true);
  static_cast<void>(once);
  HSA_ENTRY();
  if (users.fetch_add(1) == 0) {
    standin_hsa::OpenKfd();
    StartHandlers();
  }
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_shut_down() {
  HSA_ENTRY();
  uint32_t now = users.load();
  while (now != 0 && !users.compare_exchange_weak(now, now - 1)) {
  }
  if (now == 0) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  // A program that ends frees what they would use.
  if (now == 1) StopHandlers();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_status_string(hsa_status_t status, const char** text) {
  HSA_ENTRY();
  *text = status == HSA_STATUS_SUCCESS ? "HSA_STATUS_SUCCESS" : "an error of the software HSA agent";
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value) {
  HSA_ENTRY();
  switch (static_cast<int>(attribute)) {
    case HSA_SYSTEM_INFO_VERSION_MAJOR:
    case HSA_SYSTEM_INFO_VERSION_MINOR:
      *static_cast<uint16_t*>(value) = 1;
      return HSA_STATUS_SUCCESS;
    case HSA_SYSTEM_INFO_TIMESTAMP:
      *static_cast<uint64_t*>(value) = Now();
      return HSA_STATUS_SUCCESS;
    case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
      *static_cast<uint64_t*>(value) = kTicksPerSecond;
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED:
    case HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT:
    case kSystemMwaitxEnabled:
    case kSystemDmabufSupported:
    case kSystemXnackEnabled:
      *static_cast<bool*>(value) = false;
      return HSA_STATUS_SUCCESS;
    case kSystemVirtualMemorySupported:
      *static_cast<bool*>(value) = true;
      return HSA_STATUS_SUCCESS;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}
hsa_status_t hsa_system_extension_supported(uint16_t, uint16_t, uint16_t, bool* supported) {
  HSA_ENTRY();
  *supported = false;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_system_get_major_extension_table(uint16_t, uint16_t, size_t size, void* table) {
  HSA_ENTRY();
  std::memset(table, 0, size);
  return HSA_STATUS_SUCCESS;
}
