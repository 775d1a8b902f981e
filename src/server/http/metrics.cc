#include "server/http/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "base/pci_address.h"
#include "ipc/usage.h"
#include "server/usage.h"

namespace xsched::server::http {
namespace {

// What a series is about. The metric's name begins with it, and it has its labels.
enum class Scope : uint8_t { kServer, kDevice, kUser, kProcess, kQueue, kTenant };

struct ScopeInfo {
  const char* prefix;
  const char* owner;  // in help
  const char* about;  // in the table
  const char* labels;
};

const ScopeInfo& InfoOf(Scope scope) {
  static constexpr ScopeInfo kInfos[] = {
      {"xsched_server_", "the server", "the server itself", ""},
      {"xsched_device_", "the device", "a device: only for readers who see all users",
       "device, pci_bus_id, model_name, Hostname"},
      {"xsched_user_", "the user",
       "the queues of one user, with one priority, on one device, also those that are gone",
       "uid, priority, device, pci_bus_id, model_name, Hostname"},
      {"xsched_process_", "the process",
       "the queues of one process, with one priority, on one device, while it is connected",
       "client, pid, process, uid, priority, device, pci_bus_id, model_name, Hostname"},
      {"xsched_queue_", "the queue", "a queue, while it exists: only with --metrics-per-queue",
       "queue, client, pid, process, uid, device, pci_bus_id, model_name, Hostname"},
      {"xsched_tenant_", "the tenant",
       "a tenant (tenants.md), on all devices, since the server or the tenant began", "tenant, Hostname"},
  };
  return kInfos[static_cast<size_t>(scope)];
}

// Takes the values of one series.
class Samples {
 public:
  Samples(Exposition& page, const Labels& labels, const char* label)
      : page_(page), labels_(labels), label_(label) {}

  void Put(double value) { page_.Put(labels_, value); }
  // With a value of the metric's own label.
  void Put(std::string label_value, double value) {
    labels_.emplace_back(label_, std::move(label_value));
    page_.Put(labels_, value);
    labels_.pop_back();
  }
  void PutHistogram(std::span<const uint64_t> counts, double sum) {
    static const std::vector<double> bounds = [] {
      std::vector<double> seconds;
      for (Duration bound : RequestTimes::kBounds) seconds.push_back(InSeconds(bound));
      return seconds;
    }();
    page_.PutHistogram(labels_, bounds, counts, sum);
  }

 private:
  Exposition& page_;
  Labels labels_;
  const char* label_;
};

double Seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }
double Count(uint64_t number) { return static_cast<double>(number); }

template <typename Source>
struct Metric {
  const char* name;  // without the scope's prefix, _total and _info
  MetricType type;
  const char* unit;   // the end of the name; "": none
  const char* label;  // in addition to the scope's; "": none
  const char* help;   // {}: "the user", "the process"
  std::vector<Scope> scopes;
  void (*read)(const Source&, Samples&);
};

using enum MetricType;

// ---- the list ----

std::span<const Metric<Snapshot>> ServerMetrics() {
  static const std::vector<Metric<Snapshot>> metrics = {
      {"build",
       kInfo,
       "",
       "version",
       "Version of the server.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(from.status.version, 1); }},
      {"policy",
       kInfo,
       "",
       "policy",
       "Policy in use, as xsched policy show says it.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(from.status.setting, 1); }},
      {"start_time_seconds",
       kGauge,
       "seconds",
       "",
       "When the server began, in seconds since 1970.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Seconds(from.status.started_ns)); }},
      {"timeslice_seconds",
       kGauge,
       "seconds",
       "",
       "Timeslice of policies and of turns.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) {
         to.Put(static_cast<double>(from.status.timeslice_us) / 1e6);
       }},
      {"clients",
       kGauge,
       "",
       "",
       "Connected processes (each runtime in a process is one).",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.clients)); }},
      {"queues",
       kGauge,
       "",
       "",
       "Queues of all users.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.queues)); }},
      {"decisions",
       kCounter,
       "",
       "",
       "Decisions that the scheduler has taken.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.decisions)); }},
      {"state_changes",
       kCounter,
       "",
       "",
       "Reports of queues that became ready or idle, or made progress.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.state_changes)); }},
      {"rejected_connections",
       kCounter,
       "",
       "",
       "Connections closed because the client broke the protocol.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.rejected)); }},
      {"refused_queues",
       kCounter,
       "",
       "",
       "Queues that run unscheduled because their users or tenants have too many.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.refused_queues)); }},
      {"dropped_records",
       kCounter,
       "",
       "",
       "Records that tools which record did not read in time.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.dropped_records)); }},
      {"cpu_seconds",
       kCounter,
       "seconds",
       "",
       "Processor time of the server.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) {
         if (from.process) to.Put(from.process->cpu_seconds);
       }},
      {"resident_memory_bytes",
       kGauge,
       "bytes",
       "",
       "Memory that the server uses.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) {
         if (from.process) to.Put(from.process->resident_bytes);
       }},
      {"hidden_processes",
       kGauge,
       "",
       "",
       "Accounts of processes that are not on the page because there are too many.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.processes_left_out)); }},
      {"requests_without_queue",
       kCounter,
       "",
       "",
       "Requests that are in no histogram of a queue, because too many queues have one.",
       {Scope::kServer},
       [](const Snapshot& from, Samples& to) { to.Put(Count(from.status.requests_without_queue)); }},
  };
  return metrics;
}

std::span<const Metric<Row>> AccountMetrics() {
  static const std::vector<Scope> of_device = {Scope::kDevice};
  static const std::vector<Scope> of_both = {Scope::kUser, Scope::kProcess};
  static const std::vector<Scope> of_process = {Scope::kProcess};
  static const std::vector<Scope> of_all = {Scope::kDevice, Scope::kUser, Scope::kProcess};
  static const std::vector<Metric<Row>> metrics = {
      {"busy_seconds", kCounter, "seconds", "", "Time during which some queue had {}.", of_device,
       [](const Row& from, Samples& to) { to.Put(Seconds(from.usage.service_ns)); }},
      {"processes", kGauge, "", "", "Connected processes with queues on {}.", of_device,
       [](const Row& from, Samples& to) { to.Put(Count(from.processes)); }},
      {"device_time_seconds", kCounter, "seconds", "",
       "Device time that {} received. Queues that run at the same time divide it.", of_both,
       [](const Row& from, Samples& to) { to.Put(Seconds(from.usage.service_ns)); }},
      {"held_seconds", kCounter, "seconds", "reason",
       "Time during which queues of {} had work and not the device, added up over the queues.", of_both,
       [](const Row& from, Samples& to) {
         to.Put("held", Seconds(from.usage.held_ns));
         to.Put("turn", Seconds(from.usage.turn_ns));
         to.Put("off_device", Seconds(from.usage.off_device_ns));
         to.Put("limited", Seconds(from.usage.limited_ns));
       }},
      {"request_latency_seconds", kHistogram, "seconds", "",
       "Latency of the requests of {}, from ready to idle, as far as its queues report them.", of_both,
       [](const Row& from, Samples& to) {
         to.PutHistogram(from.usage.requests, Seconds(from.usage.request_ns));
       }},
      {"commands", kCounter, "", "", "Commands of {} that are known to have retired.", of_both,
       [](const Row& from, Samples& to) { to.Put(Count(from.usage.commands)); }},
      {"preemptions", kCounter, "", "", "How often a queue of {} was held.", of_both,
       [](const Row& from, Samples& to) { to.Put(Count(from.usage.holds)); }},
      {"turns", kCounter, "", "", "Turns of {} that ended, on devices with time slices.", of_both,
       [](const Row& from, Samples& to) { to.Put(Count(from.usage.turns)); }},
      {"incidents", kCounter, "", "",
       "How often a queue of {} stalled while others waited for it, so that the watchdog let all of them "
       "run.",
       of_both, [](const Row& from, Samples& to) { to.Put(Count(from.usage.incidents)); }},
      {"queues", kGauge, "", "state", "Queues of {} now.", of_all,
       [](const Row& from, Samples& to) {
         to.Put("idle", from.usage.idle);
         to.Put("running", from.usage.running);
         to.Put("held", from.usage.held);
         to.Put("stalled", from.usage.stalled);
         to.Put("absent", from.usage.absent);
       }},
      {"longest_wait_seconds", kGauge, "seconds", "",
       "How long the queue of {} that has waited longest waits now, with work and without the device; 0: "
       "none waits.",
       of_all, [](const Row& from, Samples& to) { to.Put(Seconds(from.usage.longest_wait_ns)); }},
      {"memory_bytes", kGauge, "bytes", "",
       "Memory that {} has taken of the device, by its own account; only of processes with a limit.",
       of_process,
       [](const Row& from, Samples& to) {
         if (from.usage.memory_limit != 0) to.Put(Count(from.usage.memory_used));
       }},
      {"memory_limit_bytes", kGauge, "bytes", "",
       "Memory that the program of {}, or its tenant, may take of the device.", of_process,
       [](const Row& from, Samples& to) {
         if (from.usage.memory_limit != 0) to.Put(Count(from.usage.memory_limit));
       }},
  };
  return metrics;
}

std::span<const Metric<ipc::QueueRequests>> QueueMetrics() {
  static const std::vector<Metric<ipc::QueueRequests>> metrics = {
      {"request_latency_seconds",
       kHistogram,
       "seconds",
       "",
       "Latency of the requests of {}, from ready to idle, as far as it reports them.",
       {Scope::kQueue},
       [](const ipc::QueueRequests& from, Samples& to) {
         to.PutHistogram(from.requests, Seconds(from.request_ns));
       }},
  };
  return metrics;
}

std::span<const Metric<ipc::Tenant>> TenantMetrics() {
  static const std::vector<Scope> of_tenant = {Scope::kTenant};
  static const std::vector<Metric<ipc::Tenant>> metrics = {
      {"device_time_seconds", kCounter, "seconds", "", "Device time that {} received.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) { to.Put(Seconds(from.service_ns)); }},
      {"held_seconds", kCounter, "seconds", "reason",
       "Time during which queues of {} had work and not the device, added up over the queues.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) {
         to.Put("held", Seconds(from.held_ns));
         to.Put("turn", Seconds(from.turn_ns));
         to.Put("off_device", Seconds(from.off_device_ns));
         to.Put("limited", Seconds(from.limited_ns));
       }},
      {"commands", kCounter, "", "", "Commands of {} that are known to have retired.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) { to.Put(Count(from.commands)); }},
      {"requests", kCounter, "", "", "Requests of {}, from ready to idle, as far as its queues report them.",
       of_tenant, [](const ipc::Tenant& from, Samples& to) { to.Put(Count(from.requests)); }},
      {"refused_requests", kCounter, "", "", "What {} asked for that was refused or corrected.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) { to.Put(Count(from.refused)); }},
      {"processes", kGauge, "", "", "Connected processes of {}.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) { to.Put(from.processes); }},
      {"queues", kGauge, "", "", "Queues of {} now.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) { to.Put(from.queues); }},
      {"memory_bytes", kGauge, "bytes", "",
       "Memory that the processes of {} have of the device of which they have most; only where memory is "
       "counted.",
       of_tenant,
       [](const ipc::Tenant& from, Samples& to) {
         if (from.memory_limit != 0 || from.memory_used != 0) to.Put(Count(from.memory_used));
       }},
      {"memory_limit_bytes", kGauge, "bytes", "",
       "Memory that the processes of {} may have together of each device; only with a limit.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) {
         if (from.memory_limit != 0) to.Put(Count(from.memory_limit));
       }},
      {"weight", kGauge, "", "", "Weight of {}.", of_tenant,
       [](const ipc::Tenant& from, Samples& to) { to.Put(from.weight); }},
  };
  return metrics;
}

// ---- labels ----

void AddText(Labels& labels, std::string_view name, std::string text) {
  if (!text.empty()) labels.emplace_back(name, std::move(text));
}

// As DCGM's exporter writes it, so that series of both can be joined.
std::string PciBusId(uint64_t device) {
  if (!HasPciAddress(device)) return "";
  return fmt::format("{:08X}:{:02X}:{:02X}.{:X}", device >> 16 & 0x7fff, device >> 8 & 0xff,
                     device >> 3 & 0x1f, device & 0x7);
}

// `of`: an account or a queue.
void AddProcess(Labels& labels, const auto& of) {
  AddText(labels, "client", std::to_string(of.client_id));
  AddText(labels, "pid", std::to_string(of.pid));
  AddText(labels, "process", of.name);
}

void AddDevice(Labels& labels, const auto& of, std::string number, const std::string& host) {
  AddText(labels, "device", std::move(number));
  AddText(labels, "pci_bus_id", PciBusId(of.device));
  AddText(labels, "model_name", of.device_name);
  AddText(labels, "Hostname", host);
}

std::string DeviceNumber(uint64_t device) { return fmt::format("{:x}", device); }

Labels LabelsFor(Scope scope, const ipc::Usage& account, const std::string& host) {
  Labels labels;
  if (scope == Scope::kProcess) AddProcess(labels, account);
  if (scope != Scope::kDevice) {
    AddText(labels, "uid", account.uid == UINT32_MAX ? "other" : std::to_string(account.uid));
    AddText(labels, "priority", account.others != 0 ? "other" : std::to_string(account.priority));
  }
  AddDevice(labels, account, ipc::IsOfFurtherDevices(account) ? "other" : DeviceNumber(account.device), host);
  return labels;
}

// Not its priority, which changes with its hints: the series would end.
Labels LabelsOf(const ipc::QueueRequests& queue, const std::string& host) {
  Labels labels;
  AddText(labels, "queue", std::to_string(queue.queue_id));
  AddProcess(labels, queue);
  AddText(labels, "uid", std::to_string(queue.uid));
  AddDevice(labels, queue, DeviceNumber(queue.device), host);
  return labels;
}

Labels LabelsOf(const ipc::Tenant& tenant, const std::string& host) {
  Labels labels;
  AddText(labels, "tenant", tenant.name);
  AddText(labels, "Hostname", host);
  return labels;
}

// ---- what is made of the list ----

struct LabeledRow {
  const Row* row;
  Labels labels;
};

std::vector<LabeledRow> WithLabels(Scope scope, const std::vector<Row>& rows, const std::string& host) {
  std::vector<LabeledRow> labeled;
  for (const Row& row : rows) labeled.push_back({&row, LabelsFor(scope, row.usage, host)});
  return labeled;
}

template <typename Source>
std::string FullName(const Metric<Source>& metric, Scope scope) {
  // What is there once for all needs no scope in its name.
  const bool is_info = metric.type == kInfo;
  return (is_info ? "xsched_" : InfoOf(scope).prefix) + std::string(metric.name);
}

template <typename Source>
std::string Help(const Metric<Source>& metric, Scope scope) {
  return fmt::format(fmt::runtime(metric.help), InfoOf(scope).owner);
}

template <typename Source>
void Begin(Exposition& page, const Metric<Source>& metric, Scope scope) {
  page.Begin(FullName(metric, scope), metric.type, metric.unit, Help(metric, scope));
}

template <typename Source>
bool IsOf(Scope scope, const Metric<Source>& metric) {
  return std::find(metric.scopes.begin(), metric.scopes.end(), scope) != metric.scopes.end();
}

void PutAccounts(Exposition& page, Scope scope, const std::vector<Row>& rows, const std::string& host) {
  const std::vector<LabeledRow> labeled = WithLabels(scope, rows, host);
  for (const Metric<Row>& metric : AccountMetrics()) {
    if (!IsOf(scope, metric)) continue;
    Begin(page, metric, scope);
    for (const LabeledRow& row : labeled) {
      Samples samples(page, row.labels, metric.label);
      metric.read(*row.row, samples);
    }
  }
}

template <typename Source>
void PutAll(Exposition& page, Scope scope, std::span<const Metric<Source>> metrics,
            const std::vector<Source>& sources, const std::string& host) {
  for (const Metric<Source>& metric : metrics) {
    Begin(page, metric, scope);
    for (const Source& source : sources) {
      Samples samples(page, LabelsOf(source, host), metric.label);
      metric.read(source, samples);
    }
  }
}

template <typename Source>
std::string TableRow(const Metric<Source>& metric, Scope scope) {
  const char* ending = metric.type == kCounter ? "_total" : metric.type == kInfo ? "_info" : "";
  const std::string label = *metric.label != '\0' ? fmt::format("`{}`", metric.label) : "";
  return fmt::format("| `{}{}` | {} | {} | {} | {} |\n", FullName(metric, scope), ending, NameOf(metric.type),
                     metric.unit, label, Help(metric, scope));
}

template <typename Source>
std::string TableRows(std::span<const Metric<Source>> metrics, Scope scope) {
  std::string rows;
  for (const Metric<Source>& metric : metrics) {
    if (IsOf(scope, metric)) rows += TableRow(metric, scope);
  }
  return rows;
}

}  // namespace

std::string MetricsPage(const Snapshot& snapshot, Format format) {
  Exposition page(format);
  for (const Metric<Snapshot>& metric : ServerMetrics()) {
    Begin(page, metric, Scope::kServer);
    Samples samples(page, {}, metric.label);
    metric.read(snapshot, samples);
  }
  PutAccounts(page, Scope::kDevice, snapshot.devices, snapshot.host);
  PutAccounts(page, Scope::kUser, snapshot.users, snapshot.host);
  PutAccounts(page, Scope::kProcess, snapshot.processes, snapshot.host);
  PutAll(page, Scope::kQueue, QueueMetrics(), snapshot.queues, snapshot.host);
  PutAll(page, Scope::kTenant, TenantMetrics(), snapshot.tenants, snapshot.host);
  return page.Finish();
}

std::string MetricsTable() {
  std::string table;
  for (Scope scope :
       {Scope::kServer, Scope::kDevice, Scope::kUser, Scope::kProcess, Scope::kQueue, Scope::kTenant}) {
    const ScopeInfo& info = InfoOf(scope);
    table += fmt::format(
        "\n**`{}…`**: {}.{}{}\n\n| name | type | unit | label | meaning |\n| --- | --- | --- | --- | --- |\n",
        info.prefix, info.about, *info.labels != '\0' ? " Labels: " : "", info.labels);
    table += TableRows(ServerMetrics(), scope) + TableRows(AccountMetrics(), scope) +
             TableRows(QueueMetrics(), scope) + TableRows(TenantMetrics(), scope);
  }
  return table;
}

}  // namespace xsched::server::http
