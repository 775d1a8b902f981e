// What HTTP requests ask of the server, and the server's socket as the way there.
#pragma once

#include <string>
#include <vector>

#include "ipc/client.h"
#include "ipc/messages.h"

namespace xsched::server::http {

// What users and processes have had of the devices, and their tenants.
struct UsageReport {
  std::vector<ipc::Usage> accounts;
  std::vector<ipc::QueueRequests> queues;  // only if they are asked for
  std::vector<ipc::Tenant> tenants;
};

// Each function throws std::runtime_error if the server cannot be asked.
class SchedulerClient {
 public:
  virtual ~SchedulerClient() = default;

  virtual std::vector<ipc::QueueInfo> List() = 0;
  virtual ipc::Status Status() = 0;
  virtual UsageReport Usage(bool with_queues) = 0;
  virtual ipc::Reply SetHints(const ipc::SetHints& request) = 0;
  virtual ipc::Reply SetConfig(const ipc::SetConfig& request) = 0;
  virtual ipc::Reply SetPolicy(const ipc::SetPolicy& request) = 0;
  virtual ipc::Reply SetActiveWindow(const ipc::SetActiveWindow& request) = 0;
};

// A tool's connection to the server at `path`, made for each request. Never waits longer than two seconds.
class SocketClient final : public SchedulerClient {
 public:
  explicit SocketClient(const std::string& path);

  std::vector<ipc::QueueInfo> List() override;
  ipc::Status Status() override;
  UsageReport Usage(bool with_queues) override;
  ipc::Reply SetHints(const ipc::SetHints& request) override { return Answer(request); }
  ipc::Reply SetConfig(const ipc::SetConfig& request) override { return Answer(request); }
  ipc::Reply SetPolicy(const ipc::SetPolicy& request) override { return Answer(request); }
  ipc::Reply SetActiveWindow(const ipc::SetActiveWindow& request) override { return Answer(request); }

 private:
  class Session;
  template <typename T>
  ipc::Reply Answer(const T& request);
  // `take(packet)` for each message of the answer, up to the reply at its end.
  template <typename Request, typename Take>
  void ForEachAnswer(const Request& request, Take&& take);

  ipc::SocketPath path_{};
};

}  // namespace xsched::server::http
