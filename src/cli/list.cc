// xsched list: the queues that this user may see.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/json_text.h"
#include "cli/queue_table.h"
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

void List(const ListOptions& options) {
  std::vector<ipc::QueueInfo> queues = ServerSession().List();
  if (options.pid)
    std::erase_if(queues, [&](const ipc::QueueInfo& queue) { return queue.pid != *options.pid; });
  if (options.mine) std::erase_if(queues, [](const ipc::QueueInfo& queue) { return queue.uid != getuid(); });
  std::sort(queues.begin(), queues.end(),
            [](const ipc::QueueInfo& a, const ipc::QueueInfo& b) { return a.queue_id < b.queue_id; });
  if (!options.json) {
    for (const std::string& line : QueueTable(queues)) fmt::print("{}\n", line);
    return;
  }
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
