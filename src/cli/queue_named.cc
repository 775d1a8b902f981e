#include "cli/queue_named.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>

#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

std::optional<uint64_t> NumberFrom(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

CLI::Validator QueueNumber() {
  return CLI::Validator(
      [](std::string& text) {
        return NumberFrom(text) ? "" : fmt::format("{} is not the number of a queue (see xsched list)", text);
      },
      "NUMBER");
}

uint64_t QueueNamed(ServerSession& server, const std::string& text) {
  const uint64_t number = NumberFrom(text).value_or(0);
  std::vector<uint64_t> with_handle;
  for (const ipc::QueueInfo& queue : server.List()) {
    if (queue.queue_id == number) return number;
    if (queue.handle == number) with_handle.push_back(queue.queue_id);
  }
  if (with_handle.size() > 1) {
    throw CommandError(kExitUsage,
                       fmt::format("queues {} of several programs have the handle {}: name one of them",
                                   fmt::join(with_handle, ", "), text));
  }
  return with_handle.empty() ? number : with_handle[0];  // the server says that there is none
}

}  // namespace xsched::cli
