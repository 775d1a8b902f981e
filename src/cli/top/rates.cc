#include "cli/top/rates.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace xsched::cli {
namespace {

double PerSecond(uint64_t from, uint64_t to, double seconds) {
  return seconds > 0 && to > from ? static_cast<double>(to - from) / seconds : 0.0;
}

// The server's look was not exactly so long after the one before.
double ShareOfTime(uint64_t from_ns, uint64_t to_ns, double seconds) {
  return std::min(PerSecond(from_ns, to_ns, seconds) / 1e9, 1.0);
}

auto KeyOf(const ipc::Usage& account) {
  return std::tuple(account.client_id, account.uid, account.others, account.device, account.priority);
}

}  // namespace

std::vector<QueueRates> RatesBetween(const std::vector<ipc::QueueInfo>& before,
                                     const std::vector<ipc::QueueInfo>& now, double seconds) {
  std::map<uint64_t, ipc::QueueInfo> known;
  for (const ipc::QueueInfo& queue : before) known[queue.queue_id] = queue;
  std::vector<QueueRates> rates;
  for (const ipc::QueueInfo& queue : now) {
    const ipc::QueueInfo& old = known[queue.queue_id];
    rates.push_back({.queue = queue,
                     .commands_per_s = PerSecond(old.submitted, queue.submitted, seconds),
                     .device_share = ShareOfTime(old.service_ns, queue.service_ns, seconds),
                     .waiting_share = ShareOfTime(old.waiting_ns, queue.waiting_ns, seconds)});
  }
  return rates;
}

std::vector<AccountRates> RatesBetween(const std::vector<ipc::Usage>& before,
                                       const std::vector<ipc::Usage>& now, double seconds) {
  std::map<decltype(KeyOf({})), uint64_t> known;
  for (const ipc::Usage& account : before) known[KeyOf(account)] = account.service_ns;
  std::vector<AccountRates> rates;
  for (const ipc::Usage& account : now)
    rates.push_back({account, ShareOfTime(known[KeyOf(account)], account.service_ns, seconds)});
  return rates;
}

std::vector<TenantRates> RatesBetween(const std::vector<ipc::Tenant>& before,
                                      const std::vector<ipc::Tenant>& now, double seconds) {
  std::map<std::string, uint64_t> known;
  for (const ipc::Tenant& tenant : before) known[tenant.name] = tenant.service_ns;
  std::vector<TenantRates> rates;
  for (const ipc::Tenant& tenant : now)
    rates.push_back({tenant, PerSecond(known[tenant.name], tenant.service_ns, seconds) / 1e9});
  return rates;
}

std::vector<ipc::Usage> AccountsOf(const std::vector<ipc::QueueInfo>& queues) {
  std::map<decltype(KeyOf({})), ipc::Usage> accounts;
  for (const ipc::QueueInfo& queue : queues) {
    for (uint64_t client : {queue.client_id, uint64_t{0}}) {
      ipc::Usage account{};
      account.client_id = client;
      account.uid = queue.uid;
      account.device = queue.device;
      account.memory_used = queue.memory_used;
      account.memory_limit = queue.memory_limit;
      account.pid = queue.pid;
      ipc::SetText(account.name, std::string_view(queue.name));
      ipc::SetText(account.device_name, std::string_view(queue.device_name));
      accounts.try_emplace(KeyOf(account), account).first->second.service_ns += queue.service_ns;
    }
  }
  std::vector<ipc::Usage> all;
  for (const auto& [key, account] : accounts) all.push_back(account);
  return all;
}

}  // namespace xsched::cli
