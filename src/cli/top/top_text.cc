#include "cli/top/top_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/explain/explanation.h"
#include "cli/policy_text.h"
#include "cli/queue_text.h"
#include "cli/top/steered_priority.h"
#include "cli/top/text_columns.h"
#include "server/tenants/tenant.h"

namespace xsched::cli {
namespace {

std::string PercentText(double share) { return fmt::format("{:.1f}%", share * 100); }

// The last of the parts that there is room for. The tallest block is the longest of them.
std::string LatencyLine(const Recent::Requests& requests, int width, bool ascii) {
  const double longest = static_cast<double>(std::max<Duration::rep>(requests.all.largest().count(), 1));
  const auto& parts = requests.longest;
  std::string line;
  for (size_t i = parts.size() - std::min(parts.size(), static_cast<size_t>(width)); i < parts.size(); ++i)
    line += parts[i] ? ShadeOf(static_cast<double>(parts[i]->count()) / longest, ascii) : " ";
  return line;
}

std::string LatencyText(const Recent::Requests& requests, double fraction) {
  return requests.all.count() == 0 ? "-" : TimeText(requests.all.Percentile(fraction));
}

std::string PlaceText(const ipc::QueueInfo& queue) {
  const std::string why = WhyText(queue);
  const std::string memory = MemoryText(queue);
  return fmt::format("{}{}{}{}", queue.device_name, memory.empty() ? "" : fmt::format(" ({})", memory),
                     why.empty() ? "" : ": ", why);
}

// ---- the columns of queues ----

struct Cell {
  const QueueRates& entry;
  const Recent::Requests& requests;
  int width;
  const TopStyle& style;
};

struct Column {
  const char* heading;
  int least;
  int most;
  bool right;
  int rank;  // where there is not room for all, those with the lowest ranks stay
  std::string (*text)(const Cell&);
};

const Column kColumns[] = {
    {"QUEUE", 6, 6, true, 10, [](const Cell& cell) { return std::to_string(cell.entry.queue.queue_id); }},
    {"PID", 8, 8, true, 8, [](const Cell& cell) { return std::to_string(cell.entry.queue.pid); }},
    {"PROCESS", 10, 18, false, 1, [](const Cell& cell) { return std::string(cell.entry.queue.name); }},
    {"STATE", 9, 9, false, 2, [](const Cell& cell) { return StateText(cell.entry.queue); }},
    {"PRIO", 5, 5, true, 5,
     [](const Cell& cell) { return std::to_string(SteeredPriority(cell.entry.queue, cell.style.is_admin)); }},
    {"UTIL", 5, 5, true, 14,
     [](const Cell& cell) { return fmt::format("{}%", cell.entry.queue.hints.utilization); }},
    {"LVL", 3, 3, true, 13, [](const Cell& cell) { return std::to_string(cell.entry.queue.level); }},
    {"COMMANDS/s", 11, 11, true, 12,
     [](const Cell& cell) { return fmt::format("{:.1f}", cell.entry.commands_per_s); }},
    {"DEVICE", 7, 7, true, 3, [](const Cell& cell) { return PercentText(cell.entry.device_share); }},
    {"WAITING", 7, 7, true, 6, [](const Cell& cell) { return PercentText(cell.entry.waiting_share); }},
    {"P50", 8, 8, true, 9, [](const Cell& cell) { return LatencyText(cell.requests, 0.5); }},
    {"P99", 8, 8, true, 7, [](const Cell& cell) { return LatencyText(cell.requests, 0.99); }},
    {"LATENCY", 8, 30, false, 4,
     [](const Cell& cell) { return LatencyLine(cell.requests, cell.width, cell.style.ascii); }},
    {"ON", 24, kAnyWidth, false, 11, [](const Cell& cell) { return PlaceText(cell.entry.queue); }},
};
constexpr size_t kColumnCount = std::size(kColumns);

// 0: it is left out.
std::vector<int> WidthsIn(int room) {
  std::vector<size_t> by_rank(kColumnCount);
  for (size_t i = 0; i < kColumnCount; ++i) by_rank[static_cast<size_t>(kColumns[i].rank) - 1] = i;
  std::vector<int> widths(kColumnCount);
  ++room;  // there is a blank between two columns
  for (size_t i : by_rank) {
    if (kColumns[i].least + 1 > room) break;
    widths[i] = kColumns[i].least;
    room -= kColumns[i].least + 1;
  }
  for (size_t i : by_rank) {
    if (widths[i] == 0) break;
    const int more = std::min(room, kColumns[i].most - widths[i]);
    widths[i] += more;
    room -= more;
  }
  return widths;
}

template <typename Text>
std::string Line(int room, Text&& text) {
  const std::vector<int> widths = WidthsIn(room);
  std::string line;
  for (size_t i = 0; i < kColumnCount; ++i) {
    if (widths[i] == 0) continue;
    if (!line.empty()) line += ' ';
    const std::string cell = text(kColumns[i], widths[i]);
    const bool is_open = kColumns[i].most == kAnyWidth;  // the last one
    line += is_open ? Cut(cell, widths[i]) : Fit(cell, widths[i], kColumns[i].right);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

// ---- processes ----

struct ProcessRates {
  const ipc::Usage* first;
  double share = 0;
  uint64_t service_ns = 0;
  // Of the device of which it has most.
  uint64_t memory_used = 0;
  uint64_t memory_limit = 0;
  std::vector<const QueueRates*> queues;
};

std::vector<ProcessRates> ByProcess(const std::vector<AccountRates>& accounts,
                                    const std::vector<QueueRates>& queues) {
  std::map<uint64_t, ProcessRates> processes;
  for (const auto& [account, share] : accounts) {
    if (account.client_id == 0) continue;
    ProcessRates& process = processes.try_emplace(account.client_id, ProcessRates{&account}).first->second;
    process.share += share;
    process.service_ns += account.service_ns;
    process.memory_used = std::max(process.memory_used, account.memory_used);
    process.memory_limit = std::max(process.memory_limit, account.memory_limit);
  }
  for (const QueueRates& entry : queues) {
    const auto process = processes.find(entry.queue.client_id);
    if (process != processes.end()) process->second.queues.push_back(&entry);
  }
  std::vector<ProcessRates> sorted;
  for (auto& [id, process] : processes) sorted.push_back(std::move(process));
  std::stable_sort(sorted.begin(), sorted.end(), [](const ProcessRates& one, const ProcessRates& other) {
    return one.share > other.share;
  });
  return sorted;
}

std::string MemoryOf(const ProcessRates& process) {
  return MemoryText(process.memory_used, process.memory_limit);
}

// ---- tenants or users ----

struct Sums {
  const char* heading;
  const char* of;
  std::vector<std::pair<std::string, double>> shares;  // of device time, the largest first
};

Sums Sorted(Sums sums) {
  std::ranges::stable_sort(sums.shares, std::greater{}, &std::pair<std::string, double>::second);
  return sums;
}

// The users who have processes, or had device time. None if there is one.
Sums ByUser(const std::vector<AccountRates>& accounts) {
  std::map<uint32_t, double> shares;
  for (const auto& [account, share] : accounts) {
    const bool is_of_user = account.client_id == 0;
    if (!is_of_user || share > 0) shares[account.uid] += is_of_user ? share : 0;
  }
  Sums sums{"users", "User", {}};
  if (shares.size() == 1) return sums;
  for (const auto& [uid, share] : shares) sums.shares.emplace_back(UserText(uid), share);
  return Sorted(std::move(sums));
}

bool IsOfFile(const ipc::Tenant& tenant) {
  const std::string_view name = tenant.name;
  return !name.starts_with(server::kUserTenantPrefix) && name != server::kFurtherUsersTenant;
}

// By tenant, if one of them is in the tenants' file. Otherwise each user is one.
Sums SumsOf(const std::vector<AccountRates>& accounts, const std::vector<TenantRates>& tenants) {
  Sums sums{"tenants", "Tenant", {}};
  bool any_of_file = false;
  for (const auto& [tenant, share] : tenants) {
    if (tenant.processes == 0 && share == 0) continue;
    any_of_file = any_of_file || IsOfFile(tenant);
    sums.shares.emplace_back(TenantText(tenant.name), share);
  }
  return any_of_file ? Sorted(std::move(sums)) : ByUser(accounts);
}

std::string DeviceTimeText(uint64_t ns) { return TimeText(Duration(static_cast<Duration::rep>(ns))); }

// ---- waits ----

struct OneWait {
  const ProcessWaits::Process* process;
  ProcessWaits::Because because;
  Duration time;
};

std::vector<OneWait> LongestWaits(const ProcessWaits& waits) {
  std::vector<OneWait> all;
  for (const auto& [number, process] : waits.processes()) {
    for (const auto& [because, wait] : process.waits) all.push_back({&process, because, wait.time});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const OneWait& one, const OneWait& other) { return one.time > other.time; });
  return all;
}

// "held for serve", with the other's pid if asked for.
std::string ShortBecauseText(const ProcessWaits& waits, const OneWait& wait, bool with_pid) {
  const auto other = waits.processes().find(wait.because.process);
  if (*wait.because.reason->preposition == '\0' || other == waits.processes().end())
    return wait.because.reason->phrase;
  return fmt::format("{} {} {}", wait.because.reason->phrase, wait.because.reason->preposition,
                     with_pid ? NameOf(other->second) : other->second.name);
}

// In as many words as there is room for.
std::string WaitLine(const Recent& recent, const OneWait& wait, int width) {
  const double share = recent.span() > Duration::zero() ? std::chrono::duration<double>(wait.time) /
                                                              std::chrono::duration<double>(recent.span())
                                                        : 0;
  const ProcessWaits& waits = recent.waits();
  const std::string forms[] = {fmt::format("{} {}: {} of the last {}", NameOf(*wait.process),
                                           BecauseText(waits, *wait.process, wait.because),
                                           TimeText(wait.time), TimeText(recent.span())),
                               fmt::format("{:.0f}% {} {}", share * 100, NameOf(*wait.process),
                                           ShortBecauseText(waits, wait, /*with_pid=*/true)),
                               fmt::format("{:.0f}% {} {}", share * 100, wait.process->name,
                                           ShortBecauseText(waits, wait, /*with_pid=*/false))};
  const auto* fits =
      std::ranges::find_if(forms, [&](const std::string& form) { return WidthOf(form) <= width; });
  return fits == std::end(forms) ? Cut(forms[2], width) : *fits;
}

// ---- sentences ----

std::string QueueSentence(const QueueRates& entry, const Recent::Requests& requests, bool is_admin) {
  const ipc::QueueInfo& queue = entry.queue;
  const std::string why = WhyText(queue);
  std::string text =
      fmt::format("Queue {}, priority {}, {}: {:.1f} percent of {}, waiting {:.1f} percent of the time",
                  queue.queue_id, SteeredPriority(queue, is_admin), why.empty() ? StateText(queue) : why,
                  entry.device_share * 100, queue.device_name, entry.waiting_share * 100);
  if (requests.all.count() == 0) return text + ".";
  return text + fmt::format("; {}, half of them within {}, 99 percent within {}, the longest {}.",
                            CountText(requests.all.count(), "request"),
                            TimeText(requests.all.Percentile(0.5)), TimeText(requests.all.Percentile(0.99)),
                            TimeText(requests.all.largest()));
}

}  // namespace

std::string TopSummary(const ipc::Status& status, const TopStyle& style) {
  std::string line = fmt::format("xserver {}", status.version);
  // The first ones are those that matter most.
  const std::string parts[] = {
      fmt::format(" | policy {}, timeslice {} us", PolicyText(status), status.timeslice_us),
      fmt::format(" | clients {}, queues {}", status.clients, status.queues),
      fmt::format(" | incidents {}", status.incidents),
      fmt::format(" | pid {}, up {} s", status.pid, status.uptime_ns / 1'000'000'000)};
  for (const std::string& part : parts) {
    if (WidthOf(line) + WidthOf(part) > style.width) break;
    line += part;
  }
  return Cut(line, style.width);
}

std::string DeviceLine(const std::string& name, double share, const History& history, const TopStyle& style) {
  constexpr int kName = 28, kPercent = 5, kLeastBar = 10, kBlanks = 5;
  const int name_width = std::min(kName, style.width / 3);
  const int rest = style.width - name_width - kPercent - kBlanks + 1;
  const auto sparkline = history.Sparkline(1.0, static_cast<size_t>(std::max(0, rest)), style.ascii);
  const int bar_width = std::min(60, rest - WidthOf(sparkline) - 1);
  std::string bar;
  if (bar_width >= kLeastBar) {
    const auto full = static_cast<size_t>(std::min(1.0, share) * bar_width);
    bar = fmt::format("[{:<{}}] ", std::string(full, '|'), bar_width - 2);
  }
  return Cut(fmt::format("{} {}{:>4.0f}% {}", Fit(name, name_width), bar, share * 100, sparkline),
             style.width);
}

std::vector<std::string> WaitLines(const Recent& recent, size_t most, const TopStyle& style) {
  std::vector<std::string> lines;
  for (const OneWait& wait : LongestWaits(recent.waits())) {
    if (lines.size() == most) break;
    lines.push_back(WaitLine(recent, wait, style.width));
  }
  return lines;
}

std::vector<std::string> ProcessLines(const std::vector<AccountRates>& accounts, const TopStyle& style) {
  constexpr int kWide = 58;
  std::vector<std::string> lines;
  const auto add = [&](const std::string& pid, const std::string& user, const std::string& name,
                       const std::string& time, const std::string& share, const std::string& memory) {
    const std::string wide = style.width < kWide ? "" : fmt::format("{:>8} {:<10.10} ", pid, user);
    const std::string line =
        fmt::format("{}{} {} {:>7}  {}", wide, Fit(name, 18), Fit(time, 11, true), share, memory);
    lines.push_back(Cut(line.substr(0, line.find_last_not_of(' ') + 1), style.width));
  };
  const bool any_limit = std::ranges::any_of(
      accounts, [](const AccountRates& entry) { return entry.account.memory_limit != 0; });
  add("PID", "USER", "PROGRAM", "DEVICE TIME", "DEVICE", any_limit ? "MEMORY" : "");
  for (const ProcessRates& process : ByProcess(accounts, {})) {
    add(std::to_string(process.first->pid), UserText(process.first->uid), process.first->name,
        DeviceTimeText(process.service_ns), PercentText(process.share), MemoryOf(process));
  }
  return lines;
}

std::string SumsLine(const std::vector<AccountRates>& accounts, const std::vector<TenantRates>& tenants,
                     const TopStyle& style) {
  const Sums sums = SumsOf(accounts, tenants);
  std::string line;
  for (const auto& [name, share] : sums.shares) {
    line += fmt::format("{} {} {}", line.empty() ? fmt::format("{}:", sums.heading) : ",", name,
                        PercentText(share));
  }
  return Cut(line, style.width);
}

std::string TopHeading(const TopStyle& style) {
  return Line(style.width, [](const Column& column, int) { return std::string(column.heading); });
}

std::string TopRow(const QueueRates& entry, const Recent::Requests& requests, const TopStyle& style) {
  return Line(style.width, [&](const Column& column, int width) {
    return column.text({entry, requests, width, style});
  });
}

std::vector<std::string> TopSentences(const ipc::Status& status, const std::vector<QueueRates>& queues,
                                      const std::vector<AccountRates>& accounts,
                                      const std::vector<TenantRates>& tenants, const Recent& recent) {
  std::vector<std::string> lines = {fmt::format("xserver {}, policy {}: {}, {}.", status.version,
                                                PolicyText(status), CountText(status.clients, "client"),
                                                CountText(status.queues, "queue"))};
  const std::vector<OneWait> waits = LongestWaits(recent.waits());
  for (const OneWait& wait : waits) lines.push_back(WaitLine(recent, wait, kAnyWidth) + ".");
  if (!recent.is_known()) {
    lines.emplace_back("It is not known who waited: the server remembers nothing (xserver --history).");
  } else if (waits.empty()) {
    lines.push_back(fmt::format("Nobody waited in the last {}.", TimeText(recent.span())));
  }
  const Sums sums = SumsOf(accounts, tenants);
  for (const auto& [name, share] : sums.shares)
    lines.push_back(fmt::format("{} {}: {:.1f} percent of a device.", sums.of, name, share * 100));
  for (const ProcessRates& process : ByProcess(accounts, queues)) {
    lines.push_back(fmt::format("{}, pid {}, user {}: {:.1f} percent of a device, {} of device time so far.",
                                process.first->name, process.first->pid, UserText(process.first->uid),
                                process.share * 100, DeviceTimeText(process.service_ns)));
    if (const std::string memory = MemoryOf(process); !memory.empty())
      lines.push_back(fmt::format("It has {} of memory.", memory));
    for (const QueueRates* entry : process.queues)
      lines.push_back(QueueSentence(*entry, recent.RequestsOf(entry->queue.queue_id), status.is_admin != 0));
  }
  return lines;
}

}  // namespace xsched::cli
