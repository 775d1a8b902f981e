// A libFuzzer target for HTTP requests, as libmicrohttpd passes them on, from a user and from an
// administrator; and for the metrics, whose labels are names that clients choose.
//
//   METHOD PATH?KEY=VALUE&KEY=VALUE
//   Host, Origin and Accept, one line each
//   the names of queues and accounts, one line
//   the body
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "server/http/address.h"
#include "server/http/caller.h"
#include "server/http/routes.h"

using namespace xsched;
using namespace xsched::server;
using namespace xsched::server::http;

namespace {

constexpr uid_t kServerUser = 900;
constexpr uid_t kUser = 1000;

class FakeScheduler final : public SchedulerClient {
 public:
  explicit FakeScheduler(std::string_view names) : names_(names) {}

  std::vector<ipc::QueueInfo> List() override {
    std::vector<ipc::QueueInfo> queues;
    for (uint32_t i = 0; i < 4; ++i) {
      ipc::QueueInfo queue{};
      queue.queue_id = 16 + i;
      queue.handle = i < 2 ? 0x100000001 + i : 0x300000001;
      queue.pid = static_cast<int32_t>(100 * (i / 2 + 1));
      queue.uid = i == 3 ? kUser + 1 : kUser;
      queue.level = 1 + i % 3;
      ipc::SetText(queue.name, names_);
      queues.push_back(queue);
    }
    return queues;
  }
  ipc::Status Status() override {
    ipc::Status status{};
    status.policy = kPolicyUtilizationPartition;
    ipc::SetText(status.setting, std::string_view("UP:process"));
    return status;
  }
  UsageReport Usage(bool) override {
    UsageReport report;
    for (uint32_t i = 0; i < 6; ++i) {
      ipc::Usage usage{};
      usage.uid = kUser + i / 3;
      usage.client_id = i % 3;  // 0: the user's
      usage.device = i;
      usage.requests[i] = i;
      ipc::SetText(usage.name, names_);
      report.accounts.push_back(usage);
    }
    ipc::QueueRequests queue{};
    queue.uid = kUser;
    ipc::SetText(queue.name, names_);
    report.queues.push_back(queue);
    ipc::Tenant tenant{};
    ipc::SetText(tenant.name, names_);
    report.tenants.push_back(tenant);
    return report;
  }
  ipc::Reply SetHints(const ipc::SetHints&) override { return Changed(); }
  ipc::Reply SetConfig(const ipc::SetConfig&) override { return Changed(); }
  ipc::Reply SetPolicy(const ipc::SetPolicy&) override { return Changed(); }
  ipc::Reply SetActiveWindow(const ipc::SetActiveWindow&) override { return Changed(); }

  int changes() const { return changes_; }

 private:
  ipc::Reply Changed() {
    ++changes_;
    return {};
  }

  const std::string_view names_;
  int changes_ = 0;
};

// Up to `end`; without it, what is left.
std::string_view Cut(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

Request ReadRequest(std::string_view& text) {
  Request request;
  std::string_view line = Cut(text, '\n');
  request.method = Cut(line, ' ');
  request.path = Cut(line, '?');
  while (!line.empty()) {
    std::string_view parameter = Cut(line, '&');
    const std::string_view key = Cut(parameter, '=');
    request.parameters[std::string(key)] = parameter;
  }
  request.host = Cut(text, '\n');
  request.origin = Cut(text, '\n');
  request.accept = Cut(text, '\n');
  return request;
}

// What the kernel's table of connections says, if it were this text.
void ReadTable(std::string_view text) {
  std::istringstream table{std::string(text)};
  sockaddr_in end{};
  end.sin_family = AF_INET;
  UserInTable(table, end, end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const AccessRules access(kServerUser, std::nullopt);
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Request request = ReadRequest(text);
  const std::string_view names = Cut(text, '\n');
  request.body = text;
  ReadTable(text);
  if (const auto address = ParseAddress(request.path); address && TextOf(*address).empty()) abort();
  for (const bool metrics_only : {false, true}) {
    FakeScheduler scheduler(names);
    Routes routes(scheduler, access, {.only = metrics_only});
    const std::optional<Peer> callers[] = {std::nullopt, Peer{0, kUser, {}},
                                           Peer{.uid = kServerUser, .is_admin = true}};
    for (const std::optional<Peer>& caller : callers) {
      const Answer answer = routes.Handle(request, caller);
      // Whoever is not known changes nothing, and nobody by reading.
      if ((!caller || request.method == "GET") && scheduler.changes() != 0) abort();
      if (answer.status < 200 || answer.status > 599) abort();
    }
  }
  return 0;
}
