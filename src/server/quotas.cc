#include "server/quotas.h"

#include "server/limits.h"

namespace xsched::server {

Quotas::ConnectionShare::ConnectionShare(Quotas& quotas, uid_t user) : quotas_(&quotas), user_(user) {
  Usage& usage = quotas.users_[user];
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

bool Quotas::MayConnect(uid_t user) const {
  if (connections_ >= kMaxConnections || unidentified_ >= kMaxUnidentified) return false;
  auto found = users_.find(user);
  if (found == users_.end()) return true;
  const Usage& usage = found->second;
  return usage.connections < kMaxConnectionsOfUser && usage.unidentified < kMaxUnidentifiedOfUser;
}

bool Quotas::MayAddQueue(uid_t user) const { return users_.at(user).queues < kMaxQueuesOfUser; }

void Quotas::AddQueue(uid_t user) { ++users_.at(user).queues; }

void Quotas::RemoveQueue(uid_t user) { --users_.at(user).queues; }

bool Quotas::RefuseQueue(uid_t user) { return !std::exchange(users_.at(user).queue_was_refused, true); }

}  // namespace xsched::server
