// What top shows: asks the server again and again, and compares.
#pragma once

#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/server_session.h"
#include "cli/top/rates.h"
#include "cli/top/recent.h"

namespace xsched::cli {

class Looks {
 public:
  // So many parts of time, each as long as from one look to the next, are shown of requests.
  static constexpr int kParts = 30;

  // The first look. There is nothing before it, so it shows no rates. Throws CommandError, as all looks do.
  explicit Looks(Duration delay);
  void Look();

  const ipc::Status& status() const { return status_; }
  const Recent& recent() const { return recent_; }
  const std::vector<QueueRates>& queues() const { return queues_; }
  const std::vector<AccountRates>& accounts() const { return accounts_; }
  const std::vector<TenantRates>& tenants() const { return tenants_; }

  // For what the user changes.
  ServerSession& server() { return server_; }
  std::vector<QueueRates>& queues() { return queues_; }
  void LookAtStatus() { status_ = server_.Status(); }

 private:
  // When one of the things was asked for. Each has its own times, because the server may take long for any.
  class Asked {
   public:
    Asked() = default;
    explicit Asked(TimePoint last) : last_(last) {}
    // Now; returns the time since it was asked for last, 0 the first time.
    Duration Again() {
      const TimePoint before = std::exchange(last_, MonotonicClock::now());
      return before == TimePoint{} ? Duration{} : last_ - before;
    }
    TimePoint last() const { return last_; }

   private:
    TimePoint last_{};
  };

  void LookAtQueues();
  void LookAtAccounts();
  void LookBack();

  ServerSession server_;
  ipc::Status status_{};
  std::vector<ipc::QueueInfo> queues_before_;
  std::vector<QueueRates> queues_;
  ServerSession::Used used_before_;
  std::vector<AccountRates> accounts_;
  std::vector<TenantRates> tenants_;
  Recent recent_;
  Asked for_queues_, for_accounts_, for_past_;
};

}  // namespace xsched::cli
