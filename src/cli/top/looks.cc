#include "cli/top/looks.h"

#include "cli/exit_codes.h"

namespace xsched::cli {

Looks::Looks(Duration delay) : recent_(kParts, delay), for_past_(MonotonicClock::now() - kParts * delay) {
  Look();
}

void Looks::Look() {
  LookAtQueues();
  LookAtAccounts();
  status_ = server_.Status();
  LookBack();
}

void Looks::LookAtQueues() {
  const Duration time = for_queues_.Again();
  std::vector<ipc::QueueInfo> seen = server_.List();
  queues_ = RatesBetween(queues_before_, seen, InSeconds(time));
  queues_before_ = std::move(seen);
}

void Looks::LookAtAccounts() {
  const Duration time = for_accounts_.Again();
  ServerSession::Used seen;
  if (server_.IsAtLeast(kMinorOfAccounts)) {
    seen = server_.Usage();
  } else {
    seen.accounts = AccountsOf(queues_before_);
  }
  accounts_ = RatesBetween(used_before_.accounts, seen.accounts, InSeconds(time));
  tenants_ = RatesBetween(used_before_.tenants, seen.tenants, InSeconds(time));
  used_before_ = std::move(seen);
}

void Looks::LookBack() {
  if (!server_.IsAtLeast(kMinorOfHistory)) return;
  const Duration span = for_past_.Again();
  recent_.BeginLook(for_past_.last(), span);
  try {
    recent_.EndLook(server_.GetLast(span, [this](const ipc::Packet& packet) { recent_.Take(packet); }));
  } catch (const CommandError& error) {
    // The user makes too many recordings already. The rest can be shown.
    if (error.code != kExitNotPermitted) throw;
  }
}

}  // namespace xsched::cli
