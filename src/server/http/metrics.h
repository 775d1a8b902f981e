// The metrics: one list, which makes the page that Prometheus reads, and the table in docs/metrics.md.
//
//   ipc::Status, ipc::Usage, ipc::Tenant --SnapshotFor--> Snapshot --MetricsPage--> text
//
// Pure.
#pragma once

#include <string>

#include "server/http/exposition.h"
#include "server/http/snapshot.h"

namespace xsched::server::http {

std::string MetricsPage(const Snapshot& snapshot, Format format);
// The list for docs/metrics.md, in Markdown.
std::string MetricsTable();

}  // namespace xsched::server::http
