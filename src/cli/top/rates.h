// What happened between two looks at the queues, at the accounts of users and processes, and at the tenants.
// Pure.
#pragma once

#include <vector>

#include "ipc/messages.h"

namespace xsched::cli {

struct QueueRates {
  ipc::QueueInfo queue;
  double commands_per_s = 0;
  double device_share = 0;   // 0 … 1: of the device's time
  double waiting_share = 0;  // 0 … 1: of the time, ready and held
};

// Also has what queues had that are gone.
struct AccountRates {
  ipc::Usage account;
  double device_share = 0;  // 0 … 1: of the device's time
};

// Of all devices together, so it may be more than 1.
struct TenantRates {
  ipc::Tenant tenant;
  double device_share = 0;
};

// `seconds` between the looks; 0: there was no look before, and rates are 0. What is new since then began
// with nothing. In the order of `now`.
std::vector<QueueRates> RatesBetween(const std::vector<ipc::QueueInfo>& before,
                                     const std::vector<ipc::QueueInfo>& now, double seconds);
std::vector<AccountRates> RatesBetween(const std::vector<ipc::Usage>& before,
                                       const std::vector<ipc::Usage>& now, double seconds);
std::vector<TenantRates> RatesBetween(const std::vector<ipc::Tenant>& before,
                                      const std::vector<ipc::Tenant>& now, double seconds);

// Of a server that is too old to have accounts: those of the queues that are there.
std::vector<ipc::Usage> AccountsOf(const std::vector<ipc::QueueInfo>& queues);

}  // namespace xsched::cli
