// What one page of metrics is about: what the server says of itself, and the accounts that the page's reader
// may see.
//
// Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/messages.h"
#include "server/access.h"
#include "server/http/scheduler_client.h"
#include "server/process_state.h"

namespace xsched::server::http {

// Whose accounts a reader sees.
class Readers {
 public:
  Readers(const AccessRules& access, std::optional<gid_t> metrics_group)
      : access_(access), metrics_group_(metrics_group) {}

  // Administrators, and members of the metrics group. They see all users, and the devices.
  bool SeesAll(const Peer& reader) const;
  bool Sees(const Peer& reader, uid_t owner) const { return reader.uid == owner || SeesAll(reader); }

 private:
  const AccessRules& access_;
  std::optional<gid_t> metrics_group_;
};

struct Row {
  ipc::Usage usage{};
  uint64_t processes = 0;  // of a device: those that have queues there
};

struct Snapshot {
  // The number of processes' accounts on a page. Those that came first are shown.
  static constexpr size_t kMaxProcessesShown = 1024;

  ipc::Status status{};
  std::optional<ProcessUsage> process;  // of xserver itself
  std::string host;
  // Whatever is on the device, of all users. Empty if the reader does not see all of them.
  std::vector<Row> devices;
  // With the numbers of now of their processes.
  std::vector<Row> users;
  std::vector<Row> processes;
  uint64_t processes_left_out = 0;
  // None unless the operator wants them: there is a series for each.
  std::vector<ipc::QueueRequests> queues;
  // All of them if the reader sees all users; otherwise the one that is the reader alone, if there is one.
  std::vector<ipc::Tenant> tenants;
};

// Of all that the server has sent, what the reader may see.
Snapshot SnapshotFor(const Peer& reader, const Readers& readers, const ipc::Status& status,
                     const UsageReport& report);

}  // namespace xsched::server::http
