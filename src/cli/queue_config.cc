#include "cli/queue_config.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/exit_codes.h"
#include "cli/queue_named.h"
#include "cli/server_session.h"
#include "cli/validators.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

struct QueueConfigOptions {
  std::string queue;
  int32_t pid = 0;
  uint32_t level = 0;
  int64_t threshold = 0;
  int64_t batch_size = 0;
};

bool SetQueueConfig(const QueueConfigOptions& options) {
  const bool nothing = options.level == 0 && options.threshold == 0 && options.batch_size == 0;
  if (options.queue.empty() && options.pid == 0) {
    if (nothing) return false;
    throw CommandError(kExitUsage,
                       "config: of which queue? --queue or --pid is missing (see xsched config --help)");
  }
  if (nothing)
    throw CommandError(kExitUsage,
                       "config: --level, --threshold or --batch-size is missing (see xsched config --help)");
  ServerSession server;
  ipc::SetConfig request{};
  request.queue_id = options.queue.empty() ? 0 : QueueNamed(server, options.queue);
  request.pid = options.pid;
  request.level = options.level;
  request.threshold = options.threshold;
  request.batch_size = options.batch_size;
  const uint32_t count = server.SetConfig(request);
  fmt::print("{} queue{} changed\n", count, count == 1 ? "" : "s");
  return true;
}

}  // namespace

std::function<bool()> AddQueueConfig(CLI::App& config) {
  auto options = std::make_shared<QueueConfigOptions>();
  auto* queue =
      config.add_option("--queue,-q,--xqueue,-x", options->queue, "of this queue, as listed by xsched list:")
          ->check(QueueNumber());
  config.add_option("--pid", options->pid, "of all queues of this process:")
      ->check(AboveZero())
      ->excludes(queue);
  config
      .add_option("--level,-l", options->level,
                  "set the preemption level, or the best the platform has below it")
      ->check(CLI::Range(1, 3));
  config.add_option("--threshold,-t", options->threshold, "set how many commands may be in flight")
      ->check(AboveZero());
  config.add_option("--batch-size,-b", options->batch_size, "set how many are let through at a time")
      ->check(AboveZero());
  return [options] { return SetQueueConfig(*options); };
}

}  // namespace xsched::cli
