#include "server/http/snapshot.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "ipc/usage.h"
#include "server/tenants/tenant.h"
#include "server/usage_meter.h"

namespace xsched::server::http {
namespace {

bool IsOfProcess(const ipc::Usage& account) { return account.client_id != 0; }

using Key = std::tuple<uint32_t, bool, uint64_t, int32_t>;
Key KeyOf(const ipc::Usage& account) {
  return {account.uid, account.others != 0, account.device, account.priority};
}

using Index = std::map<Key, size_t>;  // where the users' accounts are

Row* Find(const Index& index, std::vector<Row>& users, const Key& key) {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : &users[found->second];
}

bool HasAccounts(const Index& index, uint32_t uid) {
  const auto first = index.lower_bound(Key{uid, false, 0, std::numeric_limits<int32_t>::min()});
  return first != index.end() && std::get<uint32_t>(first->first) == uid;
}

// The user's account in which the process's account is counted as well. A process may have fewer accounts
// than its user. So what is in one of its accounts for others may be in several of the user's, and then the
// user gets such an account as well.
Row& UserOf(Index& index, std::vector<Row>& users, const ipc::Usage& process) {
  const Key others_of_device{process.uid, true, process.device, 0};
  for (const Key& key : {KeyOf(process), others_of_device, Key{process.uid, true, 0, 0}}) {
    if (Row* user = Find(index, users, key)) return *user;
  }
  if (!HasAccounts(index, process.uid)) {
    if (Row* user = Find(index, users, Key{UsageMeter::kOtherUsers, true, 0, 0})) return *user;
  }
  index.emplace(others_of_device, users.size());
  Row& user = users.emplace_back();
  user.usage.uid = process.uid;
  user.usage.others = 1;
  user.usage.device = process.device;
  ipc::SetText(user.usage.device_name, std::string_view(process.device_name));
  return user;
}

void AddNumbersOfNow(ipc::Usage& sum, const ipc::Usage& account) {
  sum.idle += account.idle;
  sum.running += account.running;
  sum.held += account.held;
  sum.stalled += account.stalled;
  sum.absent += account.absent;
  sum.longest_wait_ns = std::max(sum.longest_wait_ns, account.longest_wait_ns);
}

std::vector<Row> Devices(const std::vector<Row>& users, const std::vector<ipc::Usage>& accounts) {
  std::map<std::pair<bool, uint64_t>, Row> devices;
  std::map<std::pair<bool, uint64_t>, std::set<uint64_t>> clients;
  const auto key_of = [](const ipc::Usage& account) {
    return std::pair(ipc::IsOfFurtherDevices(account), account.device);
  };
  for (const Row& user : users) {
    const auto key = key_of(user.usage);
    ipc::Usage& device = devices[key].usage;
    device.device = user.usage.device;
    device.others = key.first;
    if (device.device_name[0] == '\0')
      ipc::SetText(device.device_name, std::string_view(user.usage.device_name));
    device.service_ns += user.usage.service_ns;
    AddNumbersOfNow(device, user.usage);
  }
  for (const ipc::Usage& account : accounts) {
    if (IsOfProcess(account)) clients[key_of(account)].insert(account.client_id);
  }
  std::vector<Row> rows;
  for (auto& [key, row] : devices) {
    row.processes = clients[key].size();
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

bool Readers::SeesAll(const Peer& reader) const {
  if (access_.IsAdmin(reader)) return true;
  return metrics_group_ &&
         std::find(reader.groups.begin(), reader.groups.end(), *metrics_group_) != reader.groups.end();
}

Snapshot SnapshotFor(const Peer& reader, const Readers& readers, const ipc::Status& status,
                     const UsageReport& report) {
  const auto& [accounts, queues, tenants] = report;
  Snapshot snapshot;
  snapshot.status = status;
  Index index;
  for (const ipc::Usage& account : accounts) {
    if (IsOfProcess(account) || !readers.Sees(reader, account.uid)) continue;
    index.emplace(KeyOf(account), snapshot.users.size());
    snapshot.users.push_back({account});
  }
  for (const ipc::Usage& account : accounts) {
    if (!IsOfProcess(account) || !readers.Sees(reader, account.uid)) continue;
    AddNumbersOfNow(UserOf(index, snapshot.users, account).usage, account);
    if (snapshot.processes.size() < Snapshot::kMaxProcessesShown) {
      snapshot.processes.push_back({account});
    } else {
      ++snapshot.processes_left_out;
    }
  }
  std::ranges::copy_if(queues, std::back_inserter(snapshot.queues),
                       [&](const ipc::QueueRequests& queue) { return readers.Sees(reader, queue.uid); });
  if (readers.SeesAll(reader)) snapshot.devices = Devices(snapshot.users, accounts);
  const std::string own = kUserTenantPrefix + std::to_string(reader.uid);
  for (const ipc::Tenant& tenant : tenants) {
    if (readers.SeesAll(reader) || tenant.name == own) snapshot.tenants.push_back(tenant);
  }
  return snapshot;
}

}  // namespace xsched::server::http
