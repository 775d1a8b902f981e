// xsched list: the queues that this user may see.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/json_text.h"
#include "cli/queue_text.h"
#include "cli/server_session.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

struct ListOptions {
  bool json = false;
  std::optional<int32_t> pid;
  bool mine = false;
};

std::string DeviceText(const ipc::QueueInfo& queue) {
  const std::string memory = MemoryText(queue);
  return fmt::format("{}: {}{}", PlatformText(queue.platform), queue.device_name,
                     memory.empty() ? "" : fmt::format(" ({})", memory));
}

// Its tenant claims more than it may. An older server knows of no tenants.
bool CountsOtherwise(const ipc::QueueInfo& queue) {
  return queue.tenant[0] != '\0' && queue.counted_priority != queue.hints.priority;
}

void PrintTable(const std::vector<ipc::QueueInfo>& queues) {
  size_t width = 6;
  for (const ipc::QueueInfo& queue : queues) width = std::max(width, DeviceText(queue).size());
  const bool corrected = std::any_of(queues.begin(), queues.end(), CountsOtherwise);
  fmt::print("{:>6} {:>8} {:<20} {:<10} {:<9} {:>5} {}{:>4} {:>3} {:>12} {:>10} {:>10}  {:<{}}  {}\n",
             "QUEUE", "PID", "PROCESS", "USER", "STATE", "PRIO", corrected ? "COUNTS " : "", "UTIL", "LVL",
             "COMMANDS", "SERVICE s", "WAITING s", "DEVICE", width, "WHY");
  for (const ipc::QueueInfo& queue : queues) {
    std::string row = fmt::format(
        "{:>6} {:>8} {:<20.20} {:<10.10} {:<9} {:>5} {}{:>4} {:>3} {:>12} {:>10.3f} {:>10.3f}  {:<{}}  {}",
        queue.queue_id, queue.pid, queue.name, UserText(queue.uid), StateText(queue), queue.hints.priority,
        corrected ? fmt::format("{:>6} ", queue.counted_priority) : "", queue.hints.utilization, queue.level,
        queue.submitted, static_cast<double>(queue.service_ns) / 1e9,
        static_cast<double>(queue.waiting_ns) / 1e9, DeviceText(queue), width, WhyText(queue));
    fmt::print("{}\n", row.substr(0, row.find_last_not_of(' ') + 1));
  }
}

void List(const ListOptions& options) {
  std::vector<ipc::QueueInfo> queues = ServerSession().List();
  if (options.pid)
    std::erase_if(queues, [&](const ipc::QueueInfo& queue) { return queue.pid != *options.pid; });
  if (options.mine) std::erase_if(queues, [](const ipc::QueueInfo& queue) { return queue.uid != getuid(); });
  std::sort(queues.begin(), queues.end(),
            [](const ipc::QueueInfo& a, const ipc::QueueInfo& b) { return a.queue_id < b.queue_id; });
  if (!options.json) return PrintTable(queues);
  nlohmann::json all = nlohmann::json::array();
  for (const ipc::QueueInfo& queue : queues) all.push_back(ToJson(queue));
  fmt::print("{}\n", JsonText(all));
}

}  // namespace

void AddList(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* list = app.add_subcommand("list", "list the queues (yours; all of them for administrators)");
  list->add_flag("--json", options->json, "as JSON");
  list->add_option("--pid", options->pid, "only of this process")->check(AboveZero());
  list->add_flag("--mine", options->mine, "only of this user");
  list->callback([options] { List(*options); });
}

}  // namespace xsched::cli
