#include "cli/queue_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/queue_text.h"

namespace xsched::cli {
namespace {

std::string DeviceText(const ipc::QueueInfo& queue) {
  const std::string memory = MemoryText(queue);
  return fmt::format("{}: {}{}", PlatformText(queue.platform), queue.device_name,
                     memory.empty() ? "" : fmt::format(" ({})", memory));
}

// Its tenant claims more than it may. An older server knows of no tenants.
bool CountsOtherwise(const ipc::QueueInfo& queue) {
  return queue.tenant[0] != '\0' && queue.counted_priority != queue.hints.priority;
}

// A column as wide as its longest text.
size_t WidthOfColumn(const std::vector<ipc::QueueInfo>& queues, size_t least,
                     std::string (*text)(const ipc::QueueInfo&)) {
  for (const ipc::QueueInfo& queue : queues) least = std::max(least, text(queue).size());
  return least;
}

std::string WithoutBlanksAtEnd(const std::string& line) {
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

std::vector<std::string> QueueTable(const std::vector<ipc::QueueInfo>& queues) {
  const size_t device = WidthOfColumn(queues, 6, DeviceText);
  const size_t identity = WidthOfColumn(queues, 0, IdentityText);
  const bool corrected = std::ranges::any_of(queues, CountsOtherwise);
  const auto in = [identity](const std::string& text) {
    return identity == 0 ? "" : fmt::format("  {:<{}}", text, identity);
  };
  std::vector<std::string> lines = {
      fmt::format("{:>6} {:>8} {:<20} {:<10} {:<9} {:>5} {}{:>4} {:>3} {:>12} {:>10} {:>10}  {:<{}}{}  {}",
                  "QUEUE", "PID", "PROCESS", "USER", "STATE", "PRIO", corrected ? "COUNTS " : "", "UTIL",
                  "LVL", "COMMANDS", "SERVICE s", "WAITING s", "DEVICE", device, in("IN"), "WHY")};
  for (const ipc::QueueInfo& queue : queues) {
    lines.push_back(WithoutBlanksAtEnd(fmt::format(
        "{:>6} {:>8} {:<20.20} {:<10.10} {:<9} {:>5} {}{:>4} {:>3} {:>12} {:>10.3f} {:>10.3f}  {:<{}}{}  {}",
        queue.queue_id, queue.pid, queue.name, UserText(queue.uid), StateText(queue), queue.hints.priority,
        corrected ? fmt::format("{:>6} ", queue.counted_priority) : "", queue.hints.utilization, queue.level,
        queue.submitted, static_cast<double>(queue.service_ns) / 1e9,
        static_cast<double>(queue.waiting_ns) / 1e9, DeviceText(queue), device, in(IdentityText(queue)),
        WhyText(queue))));
  }
  return lines;
}

}  // namespace xsched::cli
