#include "server/quotas.h"

#include "server/limits.h"

namespace xsched::server {

Quotas::ConnectionShare::ConnectionShare(Quotas& quotas, uid_t user)
    : quotas_(&quotas), user_(quotas.subordinates_.OwnerOf(user)) {
  Usage& usage = quotas.users_[user_];
  ++usage.connections;
  ++usage.unidentified;
  ++quotas.connections_;
  ++quotas.unidentified_;
}

Quotas::ConnectionShare::~ConnectionShare() {
  if (quotas_ == nullptr) return;
  Identify();
  --quotas_->connections_;
  auto found = quotas_->users_.find(user_);
  if (--found->second.connections == 0) quotas_->users_.erase(found);
}

void Quotas::ConnectionShare::Identify() {
  if (std::exchange(identified_, true)) return;
  --quotas_->users_.at(user_).unidentified;
  --quotas_->unidentified_;
}

bool Quotas::MayConnect(uid_t user, bool is_admin) const {
  const size_t reserved = is_admin ? 0 : kReservedForAdmins;
  if (connections_ + reserved >= kMaxConnections || unidentified_ + reserved >= kMaxUnidentified)
    return false;
  auto found = users_.find(subordinates_.OwnerOf(user));
  if (found == users_.end()) return true;
  const Usage& usage = found->second;
  return usage.connections < connections_of_user_ && usage.unidentified < kMaxUnidentifiedOfUser;
}

bool Quotas::MayAddQueue(uid_t user, uint64_t device) const {
  const Usage& usage = Of(user);
  return queues_ < kMaxQueues && usage.queues < kMaxQueuesOfUser &&
         (usage.devices.size() < kMaxDevicesOfUser || usage.devices.contains(device));
}

void Quotas::AddQueue(uid_t user, uint64_t device) {
  Usage& usage = Of(user);
  ++usage.devices[device];
  ++usage.queues;
  ++queues_;
}

void Quotas::RemoveQueue(uid_t user, uint64_t device) {
  Usage& usage = Of(user);
  --usage.queues;
  --queues_;
  auto found = usage.devices.find(device);
  if (--found->second == 0) usage.devices.erase(found);
}

bool Quotas::RefuseQueue(uid_t user) { return !std::exchange(Of(user).queue_was_refused, true); }

}  // namespace xsched::server
